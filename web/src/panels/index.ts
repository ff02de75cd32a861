/** The panels below the timeline, in the order of their tabs; the sidebar and the search field. */
import type { ComponentType } from "preact";
import "./panels.css";
import { followSelection } from "./details/loading";
import { DiagnosticsPanel } from "./diagnostics/diagnostics";
import { DiffPanel } from "./diff/diff";
import { FindingsPanel } from "./findings/findings";
import { FlamePanel } from "./flame/flame";
import { MemoryPanel } from "./memory/memory";
import { SelectionPanel } from "./selection/selection";
import { SqlPanel } from "./sql/sql";
import { StatsPanel } from "./stats/stats";
import { StepsPanel } from "./steps/steps";

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
  { id: "steps", title: "Steps", key: "3", component: StepsPanel },
  { id: "flame", title: "Flame", key: "4", component: FlamePanel },
  { id: "memory", title: "Memory", key: "5", component: MemoryPanel },
  { id: "selection", title: "Selection", key: "6", component: SelectionPanel },
  { id: "sql", title: "SQL", key: "7", component: SqlPanel },
  { id: "diagnostics", title: "Diagnostics", key: "8", component: DiagnosticsPanel },
  { id: "diff", title: "Diff", key: "9", component: DiffPanel },
];

followSelection();
