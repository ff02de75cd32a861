/** The time that a panel covers: the whole report, the visible or the marked time. */
import type { Signal } from "@preact/signals";
import { signal } from "@preact/signals";
import { ranges, view } from "../../app/state";
import type { Span } from "../../data/source";
import { inReport } from "./jump";
import { remembered } from "./remembered";

export type Extent = "all" | "view" | "range";

/** What was chosen last in a panel. */
export function extentOf(panel: string): Signal<Extent> {
  return remembered(`extent of ${panel}`, () => signal<Extent>("all"));
}

/** The time in a report; undefined: all of it. */
export function spanOf(extent: Extent, report: number): Span | undefined {
  const span = extent === "view" ? view.value : extent === "range" ? (ranges.value[0] ?? null) : null;
  return span === null ? undefined : inReport(report, span);
}

export function ExtentChoice({ extent }: { extent: Signal<Extent> }) {
  return (
    <select aria-label="Of which time" value={extent.value} onChange={(event) => (extent.value = event.currentTarget.value as Extent)}>
      <option value="all">whole report</option>
      <option value="view">what the timeline shows</option>
      <option value="range" disabled={ranges.value.length === 0}>the marked range</option>
    </select>
  );
}
