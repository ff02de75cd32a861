/** Finds the event under the pointer, and the neighbours of an event. */
import { firstWhere } from "../../data/cut";
import type { Track } from "../../data/types";
import { type Tiles, tileAt } from "../data/tiles";
import { type Run, firstAfter } from "../draw/pack";
import { type Row, firstRow, laneTop } from "./rows";

export interface Hit {
  row: Row;
  track: Track;
  lane: number;
  run: Run;
  /** Index into the columns of `run.rects`. */
  index: number;
}

/** The row at a height of its zone; null below the last. */
export function rowAt(rows: readonly Row[], y: number): Row | null {
  return y < 0 ? null : (rows[firstRow(rows, y)] ?? null);
}

/** The lane at a height of the row. */
export function laneAt(row: Row, y: number): number | null {
  if (row.node.track === undefined || row.style === "counter") return null;
  if (row.lanes === 1) return 0;
  const lane = Math.floor((y - laneTop(row, 0)) / row.laneHeight);
  return lane >= 0 && lane < row.lanes ? lane : null;
}

/** The slice of a run at a time, or the nearest one within `reach` ns. */
export function sliceAt(run: Run, time: number, reach: number): number | null {
  const { start, duration } = run.rects;
  const last = run.first + run.count;
  const at = firstAfter(run, time);
  if (at < last && start[at]! <= time && start[at]! + duration[at]! > time) return at;
  // Narrow ones are hit from beside, too; the longest of those near wins.
  let best: number | null = null;
  for (let near = Math.max(at - 2, run.first); near < Math.min(at + 2, last); near += 1) {
    const off = Math.max(start[near]! - time, time - start[near]! - duration[near]!);
    if (off <= reach && (best === null || off < Math.max(start[best]! - time, time - start[best]! - duration[best]!))) best = near;
  }
  return best;
}

/** The run of a lane that a time is drawn from. */
export function runAt(tiles: Tiles | undefined, lane: number, time: number): Run | undefined {
  return tileAt(tiles, time)?.lanes[lane];
}

export function hit(row: Row, y: number, time: number, reach: number, tilesOf: (track: Track) => Tiles | undefined): Hit | null {
  const lane = laneAt(row, y);
  const track = row.node.track;
  if (lane === null || track === undefined) return null;
  const run = runAt(tilesOf(track), lane, time);
  if (run === undefined) return null;
  const index = sliceAt(run, time, reach);
  return index === null ? null : { row, track, lane, run, index };
}

/** The slice before or after one in its run, as far as that reaches. */
export function neighbour(run: Run, index: number, step: 1 | -1): number | null {
  const next = index + step;
  return next >= run.first && next < run.first + run.count ? next : null;
}

/** The slice that begins at a time, of a track and row number. */
export function find(run: Run, start: number, row: number): number | null {
  const { rects } = run;
  const at = firstWhere(run.first, run.first + run.count, (index) => rects.start[index]! >= start);
  for (let near = Math.max(at - 1, run.first); near < Math.min(at + 2, run.first + run.count); near += 1) {
    if (rects.row[near] === row) return near;
  }
  return null;
}

/** Starts and ends of slices around a time, for edges of a range to snap to. */
export function edgesAround(run: Run, begin: number, end: number): number[] {
  const { start, duration } = run.rects;
  const found: number[] = [];
  for (let at = firstAfter(run, begin); at < run.first + run.count && start[at]! <= end && found.length < 200; at += 1) {
    found.push(start[at]!, start[at]! + duration[at]!);
  }
  return found;
}
