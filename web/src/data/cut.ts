/** Cuts a stretch of time and some tracks out of a complete answer, without computing shapes anew. */
import type { Plot, Rects, ViewportQuery } from "./types";

/** The first index in [from, to) at which `holds`, which is false up to there and true from there on; `to` where it never is. */
export function firstWhere(from: number, to: number, holds: (index: number) => boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

interface Run {
  track: number;
  lane: number;
  from: number;
  to: number;
}

function runs(whole: Rects, query: Pick<ViewportQuery, "begin" | "end" | "tracks">): Run[] {
  const asked = new Set(query.tracks);
  return whole.lanes
    .filter((lane) => asked.has(lane.track))
    .map(({ track, lane, first, count }) => {
      // Slices of a lane do not overlap, so that their ends are in order, too. What lasts no time belongs to where it begins.
      const from = firstWhere(first, first + count, (at) => whole.start[at]! + whole.duration[at]! > query.begin || whole.start[at]! >= query.begin);
      return { track, lane, from, to: firstWhere(from, first + count, (at) => whole.start[at]! >= query.end) };
    })
    .filter((run) => run.to > run.from);
}

/** How many rectangles `cutRects` would give. */
export function countRects(whole: Rects, query: Pick<ViewportQuery, "begin" | "end" | "tracks">): number {
  return runs(whole, query).reduce((sum, run) => sum + run.to - run.from, 0);
}

/** The rectangles of some tracks that are seen in [begin, end); names are those of the whole answer. */
export function cutRects(whole: Rects, query: Pick<ViewportQuery, "begin" | "end" | "tracks">): Rects {
  const kept = runs(whole, query);
  const total = kept.reduce((sum, run) => sum + run.to - run.from, 0);
  const cut: Rects = {
    ...whole,
    begin: query.begin,
    end: query.end,
    lanes: [],
    start: new Float64Array(total),
    duration: new Float64Array(total),
    name: new Uint32Array(total),
    row: new Uint32Array(total),
    slices: new Uint32Array(total),
    busy: new Float32Array(total),
    link: new Uint32Array(total),
  };
  let first = 0;
  for (const { track, lane, from, to } of kept) {
    for (const column of ["start", "duration", "name", "row", "slices", "busy", "link"] as const) cut[column].set(whole[column].subarray(from, to), first);
    cut.lanes.push({ track, lane, first, count: to - from });
    first += to - from;
  }
  return cut;
}

/** The values of a counter in [begin, end), and the one before, which lasts into it. */
export function cutPlot(whole: Plot, begin: number, end: number): Plot {
  const count = whole.time.length;
  const from = Math.max(firstWhere(0, count, (at) => whole.time[at]! > begin) - 1, 0);
  const to = firstWhere(from, count, (at) => whole.time[at]! >= end);
  const { track, time, low, high, last } = whole;
  return { track, begin, end, time: time.slice(from, to), low: low.slice(from, to), high: high.slice(from, to), last: last.slice(from, to) };
}
