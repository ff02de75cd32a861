/** Actions of keys, buttons and panels on the state, each written once. */
import type { Span } from "../data/source";
import type { Located } from "../data/types";
import { meta, offsets, panel, ranges, selected, view } from "./state";

/** Show a part of time; never less than 10 ns, never more than twice the reports, and always some of them. */
export function show(span: Span): void {
  const whole = everything();
  const most = (whole.end - whole.begin) * 2 || 1;
  const width = Math.min(Math.max(span.end - span.begin, 10), most);
  const middle = Math.min(Math.max((span.begin + span.end) / 2, whole.begin - width / 4), whole.end + width / 4);
  view.value = { begin: middle - width / 2, end: middle + width / 2 };
}

/** All of the reports, on the axis. */
export function everything(): Span {
  const spans = (meta.value?.reports ?? []).map((one) => {
    const offset = offsets.value[one.report] ?? 0;
    return { begin: one.begin + offset, end: one.end + offset };
  });
  if (spans.length === 0) return { begin: 0, end: 1 };
  return { begin: Math.min(...spans.map((one) => one.begin)), end: Math.max(...spans.map((one) => one.end)) };
}

/** Show all, with a little air. */
export function showAll(): void {
  const { begin, end } = everything();
  const air = (end - begin) * 0.01;
  show({ begin: begin - air, end: end + air });
}

/** Of what is seen, how much an event takes at least and at most for the zoom to stay as it is. */
const SPECK = 0.01;
const MOST = 0.8;
/** Of the recording, how much is seen at most around what has no length. */
const AROUND = 1 / 50;

/** Select an event and, where `jump`, bring it into view. The timeline opens and scrolls to its track. */
export function select(event: Located | null, jump = false): void {
  selected.value = event;
  if (event !== null && jump) bring(onAxis(event));
}

/** Bring a stretch of time into view: steps from one slice to the next keep the zoom, unless the slice would be a speck or not fit. */
export function bring(span: Span): void {
  const { begin, end } = view.value;
  const length = span.end - span.begin;
  const whole = everything();
  const wide = length > 0 ? end - begin : Math.min(end - begin, (whole.end - whole.begin) * AROUND);
  if (length > 0 && (length < wide * SPECK || length > wide * MOST)) {
    const air = Math.max(length, 100) * 2;
    show({ begin: span.begin - air, end: span.end + air });
  } else if (wide < end - begin || span.begin < begin || span.end > end) {
    const middle = (span.begin + span.end) / 2;
    show({ begin: middle - wide / 2, end: middle + wide / 2 });
  }
}

/** Mark a range of time, replacing what was marked; `compare` keeps the first one. */
export function mark(span: Span, compare = false): void {
  ranges.value = compare && ranges.value.length > 0 ? [ranges.value[0]!, span] : [span];
}

/** Mark the time of what is selected; false where nothing is. */
export function markSelected(compare = false): boolean {
  const event = selected.value;
  if (event === null) return false;
  mark(onAxis(event), compare);
  return true;
}

/** Open a panel, or close it where it is open. */
export function togglePanel(id: string): void {
  panel.value = panel.value === id ? null : id;
}

function onAxis(event: Located): Span {
  const begin = event.start + (offsets.value[event.report] ?? 0);
  return { begin, end: begin + event.duration };
}
