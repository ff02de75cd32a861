/** The contents of all tabs, loaded after the timeline, since they are half of the code. */
import type { ComponentType } from "preact";
import { DiagnosticsPanel } from "./diagnostics/diagnostics";
import { DiffPanel } from "./diff/diff";
import { FindingsPanel } from "./findings/findings";
import { FlamePanel } from "./flame/flame";
import type { PanelId } from "./index";
import { MemoryPanel } from "./memory/memory";
import { SelectionPanel } from "./selection/selection";
import { SourcePanel } from "./source/source";
import { SqlPanel } from "./sql/sql";
import { StatsPanel } from "./stats/stats";
import { StepsPanel } from "./steps/steps";

export const components: Record<PanelId, ComponentType> = {
  findings: FindingsPanel,
  stats: StatsPanel,
  steps: StepsPanel,
  flame: FlamePanel,
  source: SourcePanel,
  memory: MemoryPanel,
  selection: SelectionPanel,
  sql: SqlPanel,
  diagnostics: DiagnosticsPanel,
  diff: DiffPanel,
};
