/** The panels below the timeline, in the order of their tabs; the sidebar and the search field. */
import "./panels.css";
import { followSelection } from "./details/loading";

export { Details } from "./details/details";
export { SearchBox } from "./search/box";
export { search, step as searchStep } from "./search/searching";

/** `key`: the key that opens it. What it shows is in `all.ts`. */
export const panels = [
  { id: "findings", title: "Findings", key: "1" },
  { id: "stats", title: "Stats", key: "2" },
  { id: "steps", title: "Steps", key: "3" },
  { id: "flame", title: "Flame", key: "4" },
  { id: "memory", title: "Memory", key: "5" },
  { id: "selection", title: "Selection", key: "6" },
  { id: "sql", title: "SQL", key: "7" },
  { id: "diagnostics", title: "Diagnostics", key: "8" },
  { id: "diff", title: "Diff", key: "9" },
  { id: "source", title: "Source", key: "o" },
] as const;
export type PanelId = (typeof panels)[number]["id"];

followSelection();
