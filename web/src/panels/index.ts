/** The panels below the timeline, in the order of their tabs; the sidebar and the search field. */
import type { ComponentType } from "preact";
import "./panels.css";
import { followSelection } from "./details/loading";
import { DiagnosticsPanel } from "./diagnostics/diagnostics";
import { FindingsPanel } from "./findings/findings";
import { StatsPanel } from "./stats/stats";

export { Details } from "./details/details";
export { SearchBox } from "./search/box";
export { search, step as searchStep } from "./search/searching";

/** `key`: the key that opens it. */
export interface Panel {
  id: string;
  title: string;
  key: string;
  component: ComponentType;
}

export const panels: Panel[] = [
  { id: "findings", title: "Findings", key: "1", component: FindingsPanel },
  { id: "stats", title: "Stats", key: "2", component: StatsPanel },
  { id: "diagnostics", title: "Diagnostics", key: "8", component: DiagnosticsPanel },
];

followSelection();
