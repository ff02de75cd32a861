/** Finds the event or row under a point of the canvas. */
import type { Span } from "../../data/source";
import { marks, offsets, ranges, view } from "../../app/state";
import { located } from "../data/located";
import type { Store } from "../data/tiles";
import { type Window, windowAt } from "../draw/frame";
import { type Hit, edgesAround, hit, laneAt, rowAt, runAt } from "../layout/hit";
import type { Row } from "../layout/rows";
import { scaleOf, toTime } from "../layout/scale";
import { pointer, size } from "../local";
import type { Located } from "../../data/types";
import { snap } from "../layout/navigate";

/** Distance in CSS pixels at which the pointer hits narrow events, and at which it snaps to edges. */
const REACH = 3;
const SNAP = 7;

export interface Under {
  time: number;
  row: Row | null;
  hit: Hit | null;
}

export function timeAt(x: number): number {
  return toTime(scaleOf(view.value, size.value.width), x);
}

/** Where keys zoom: at the pointer, else in the middle. */
export function center(): number {
  const at = pointer.peek();
  return at === null ? (view.value.begin + view.value.end) / 2 : timeAt(at.x);
}

export function under(store: Store, windows: readonly Window[], x: number, y: number): Under {
  const time = timeAt(x);
  const window = windowAt(windows, y);
  const row = window === null ? null : rowAt(window.rows, y - window.shift);
  if (row === null || window === null) return { time, row: null, hit: null };
  const grain = (view.value.end - view.value.begin) / Math.max(size.value.width, 1);
  const own = time - (offsets.value[row.report] ?? 0);
  return { time, row, hit: hit(row, y - window.shift - row.y, own, REACH * grain, (track) => store.get(row.report, track.track)) };
}

export function eventOf(found: Hit): Located {
  return located(found.row, found.track, found.lane, found.run, found.index);
}

/** A time, moved onto the edge of an event, mark or range where one is near. */
export function snapped(store: Store, windows: readonly Window[], x: number, y: number, beside: Span | null = null): number {
  const time = timeAt(x);
  const grain = (view.value.end - view.value.begin) / Math.max(size.value.width, 1);
  const reach = SNAP * grain;
  const window = windowAt(windows, y);
  const row = window === null ? null : rowAt(window.rows, y - window.shift);
  const candidates = [...marks.value.map((mark) => mark.time), ...ranges.value.flatMap((one) => (one === beside ? [] : [one.begin, one.end]))];
  if (row !== null && window !== null && row.node.track !== undefined) {
    const offset = offsets.value[row.report] ?? 0;
    const lane = laneAt(row, y - window.shift - row.y);
    const run = lane === null ? undefined : runAt(store.get(row.report, row.node.track.track), lane, time - offset);
    if (run !== undefined) candidates.push(...edgesAround(run, time - offset - reach, time - offset + reach).map((edge) => edge + offset));
  }
  return snap(time, candidates, reach);
}
