/** The keys of the page itself; those of the timeline are in `timeline/input/keys.ts`. */
import { panels, search, searchStep } from "../../panels";
import { markSelected, togglePanel } from "../actions";
import { type Binding, addKeys } from "./keys";
import { type ColorBy, type GroupBy, colorBy, found, groupBy, help, panel } from "../state";
import { nextTheme } from "../theme";

export const GROUPS: readonly GroupBy[] = ["host", "device", "rank"];
export const COLORS: readonly ColorBy[] = ["name", "category", "correlation"];
/** The panel that was open before all were closed. */
let before = "findings";

function next<T>(list: readonly T[], now: T): T {
  return list[(list.indexOf(now) + 1) % list.length]!;
}

function focus(id: string): () => boolean {
  return () => {
    const field = document.getElementById(id);
    if (!(field instanceof HTMLInputElement)) return false;
    field.focus();
    field.select();
    return true;
  };
}

export function addPageKeys(): () => void {
  const own: Binding[] = [
    { keys: ["/"], group: "Find", does: "Search names", run: focus("search") },
    { keys: ["n"], group: "Find", does: "Next hit", run: () => found.value !== null && void searchStep(false) },
    { keys: ["p", "Shift+n"], group: "Find", does: "Previous hit", run: () => found.value !== null && void searchStep(true) },
    { keys: ["k"], group: "Find", does: "Filter the tracks", run: focus("filter") },
    { keys: ["Shift+m"], group: "Select", does: "Mark the time of the selected event", run: () => markSelected() },
    { keys: ["Shift+c"], group: "Show", does: "Colour by name, category or launch", run: () => void (colorBy.value = next(COLORS, colorBy.value)) },
    { keys: ["g"], group: "Show", does: "Group by host, device or rank", run: () => void (groupBy.value = next(GROUPS, groupBy.value)) },
    { keys: ["t"], group: "Show", does: "Dark, light or as the system", run: nextTheme },
    {
      keys: ["b"], group: "Panels", does: "Close the panel, or open it again",
      run: () => {
        if (panel.value !== null) before = panel.value;
        togglePanel(panel.value ?? before);
      },
    },
    ...panels.map((one) => ({ keys: [one.key], group: "Panels", does: one.title, run: () => togglePanel(one.id) })),
    { keys: ["?"], group: "Show", does: "This help", run: () => void (help.value = !help.value) },
    { keys: ["Escape"], group: "Find", does: "End the search", run: () => found.value !== null && void search("", false) },
  ];
  return addKeys(own);
}
