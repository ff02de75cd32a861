/** Jumps from a row of a panel to the timeline: selects its event, shows it and marks its time. */
import { bring, mark, select, show } from "../../app/actions";
import { meta, offsets } from "../../app/state";
import type { Span } from "../../data/source";
import type { Located } from "../../data/types";

/** A time of a report on the axis that all reports share. */
export function onAxis(report: number, ns: number): number {
  return ns + (offsets.value[report] ?? 0);
}

/** A stretch of the axis in the times of a report. */
export function inReport(report: number, span: Span): Span {
  const offset = offsets.value[report] ?? 0;
  return { begin: span.begin - offset, end: span.end - offset };
}

/** How long a report is, ns; 1 where it is not known, so that shares can be taken of it. */
export function lasting(report: number): number {
  const one = meta.value?.reports.find((each) => each.report === report);
  return one === undefined ? 1 : Math.max(one.end - one.begin, 1);
}

/** Show a stretch of a report with some time around it, and mark it where it lasts; to a moment, the zoom stays. */
export function goToSpan(report: number, start: number, end: number, marked = true): void {
  const [begin, until] = [onAxis(report, start), onAxis(report, end)];
  if (until <= begin) bring({ begin, end: begin });
  else show({ begin: begin - Math.max(until - begin, 100), end: until + Math.max(until - begin, 100) });
  if (marked && until > begin) mark({ begin, end: until });
}

/** Select an event and show it. */
export function goTo(event: Located): void {
  select(event, true);
}
