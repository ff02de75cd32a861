/** Actions of keys on the timeline, wherever the focus is; the view glides while a key is held. */
import { everything, select } from "../../app/actions";
import { type Binding, addKeys } from "../../app/keys/keys";
import { offsets, ranges, selected, view } from "../../app/state";
import { find, neighbour, runAt } from "../layout/hit";
import { fitEvent, fitTo, panBy, zoomAt } from "../layout/navigate";
import { located } from "../data/located";
import type { Row } from "../layout/rows";
import { focusedRow, layout, places, pointer, size } from "../local";
import type { Stage } from "../stage";
import { center, under } from "./hits";
import { addMark, go, scrollBy } from "./pointer";
import { hide, toggleLanes, toggleOpen, togglePin } from "./reorder";

/** One tap, then what a second of holding does: shares of the view, pixels. */
const TAP = { pan: 0.1, zoom: 0.82, scroll: 60 };
const HELD = { pan: 1.1, zoom: 0.12, scroll: 900 };

type Motion = { kind: "pan" | "scroll"; way: 1 | -1 } | { kind: "zoom"; way: 1 | -1 };

function apply(motion: Motion, amount: { pan: number; zoom: number; scroll: number }): void {
  if (motion.kind === "pan") go(panBy(view.value, motion.way * amount.pan));
  else if (motion.kind === "scroll") scrollBy(motion.way * amount.scroll);
  else go(zoomAt(view.value, center(), motion.way > 0 ? amount.zoom : 1 / amount.zoom));
}

function glide(stage: Stage, held: Set<Motion>): void {
  stage.move((elapsed) => {
    const part = elapsed / 1000;
    for (const motion of held) apply(motion, { pan: HELD.pan * part, zoom: HELD.zoom ** part, scroll: HELD.scroll * part });
    return held.size > 0;
  });
}

/** What `f` fits: the selected event, else the marked range. */
export function fitSelection(): boolean {
  const event = selected.value;
  if (event !== null) {
    go(fitEvent(view.value, event.start + (offsets.value[event.report] ?? 0), event.duration));
    return true;
  }
  const range = ranges.value.at(-1);
  if (range === undefined) return false;
  go(fitTo(range));
  return true;
}

/** Selects the event before or after the selected one in its lane; brings it into view. */
export function stepEvent(stage: Stage, step: 1 | -1): boolean {
  const event = selected.value;
  const row = event === null ? null : (places.value.of(event.report, event.track)?.row ?? null);
  if (event === null || row?.node.track === undefined) return false;
  const run = runAt(stage.store.get(event.report, event.track), event.lane, event.start);
  const index = run === undefined ? null : find(run, event.start, event.row);
  const next = run === undefined || index === null ? null : neighbour(run, index, step);
  if (run === undefined || next === null) return false;
  const found = located(row, row.node.track, event.lane, run, next);
  select(found);
  reveal(found.start + (offsets.value[found.report] ?? 0), found.duration);
  return true;
}

/** Moves, but does not zoom, so that a stretch of time is seen. */
export function reveal(begin: number, duration: number): void {
  const { begin: from, end: to } = view.value;
  if (begin >= from && begin + duration <= to) return;
  if (begin < from && begin + duration > to) return;
  const middle = begin + Math.min(duration, to - from) / 2;
  go({ begin: middle - (to - from) / 2, end: middle + (to - from) / 2 });
}

export function listenKeys(stage: Stage): () => void {
  const held = new Set<Motion>();
  const moving = (keys: readonly string[], does: string, motion: Motion): Binding => ({
    keys, group: "Move", does,
    run: (event) => {
      if (event.repeat) return;
      apply(motion, TAP);
      held.add(motion);
      glide(stage, held);
    },
    done: () => held.delete(motion),
  });
  return addKeys([
    moving(["w", "+", "="], "Zoom in at the pointer", { kind: "zoom", way: 1 }),
    moving(["s", "-"], "Zoom out", { kind: "zoom", way: -1 }),
    moving(["a", "ArrowLeft"], "Earlier", { kind: "pan", way: -1 }),
    moving(["d", "ArrowRight"], "Later", { kind: "pan", way: 1 }),
    moving(["ArrowUp"], "Scroll up", { kind: "scroll", way: -1 }),
    moving(["ArrowDown"], "Scroll down", { kind: "scroll", way: 1 }),
    { keys: ["PageUp"], group: "Move", does: "A page of tracks up", run: () => scrollBy(-size.value.height * 0.8) },
    { keys: ["PageDown"], group: "Move", does: "A page of tracks down", run: () => scrollBy(size.value.height * 0.8) },
    { keys: ["0", "Home"], group: "Move", does: "Show all of the recording", run: () => go(everything()) },
    { keys: ["f"], group: "Select", does: "Fit the selected event or range", run: fitSelection },
    { keys: ["."], group: "Select", does: "Next event of the lane", run: () => stepEvent(stage, 1) },
    { keys: [","], group: "Select", does: "Event before in the lane", run: () => stepEvent(stage, -1) },
    { keys: ["m"], group: "Select", does: "Set a mark at the pointer", run: () => addMark(center()) },
    { keys: ["c"], group: "Tracks", does: "Open or close the group at the pointer", run: () => ofRow(stage, toggleOpen) },
    { keys: ["e"], group: "Tracks", does: "Show all or few lanes of the track at the pointer", run: () => ofRow(stage, toggleLanes) },
    { keys: ["Shift+p"], group: "Tracks", does: "Pin the track at the pointer to the top", run: () => ofRow(stage, togglePin) },
    { keys: ["h"], group: "Tracks", does: "Hide the track at the pointer", run: () => ofRow(stage, hide) },
    { keys: ["Escape"], group: "Select", does: "Select nothing", run: () => dropSelection() },
  ]);
}

/** Does something with the row at the pointer, else with the one that has the focus. */
function ofRow(stage: Stage, act: (row: Row) => void): boolean {
  const at = pointer.value;
  const { pinned, main } = layout.value;
  const row = at === null ? [...pinned.rows, ...main.rows].find((one) => one.key === focusedRow.value) : under(stage.store, stage.windows(), at.x, at.y).row;
  if (row === null || row === undefined) return false;
  act(row);
  return true;
}

function dropSelection(): boolean {
  if (selected.value === null && ranges.value.length === 0) return false;
  select(null);
  ranges.value = [];
  return true;
}
