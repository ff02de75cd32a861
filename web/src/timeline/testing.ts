/** Small trees and answers for tests of the timeline. */
import type { Rects, Track, TrackNode } from "../data/types";

export function track(number: number, more: Partial<Track> = {}): Track {
  return { report: 0, track: number, kind: "slices", layer: "nvtx_ranges", lanes: 1, events: 1, busy: 0.5, begin: 0, end: 1000, ...more };
}

export function node(id: string, more: Partial<TrackNode> = {}): TrackNode {
  return { id, kind: "group", name: id, children: [], ...more };
}

export interface Slice {
  track: number;
  lane?: number;
  start: number;
  duration: number;
  name: string;
  color?: number;
  slices?: number;
  busy?: number;
  link?: number;
}

/** An answer with these slices; those of a lane must follow each other. */
export function rects(slices: readonly Slice[], begin = 0, end = 1000): Rects {
  const names = [...new Map(slices.map((one) => [one.name, { text: one.name, color: one.color ?? null }])).values()];
  const lanes: Rects["lanes"] = [];
  slices.forEach((one, index) => {
    const last = lanes.at(-1);
    if (last !== undefined && last.track === one.track && last.lane === (one.lane ?? 0)) last.count += 1;
    else lanes.push({ track: one.track, lane: one.lane ?? 0, first: index, count: 1 });
  });
  return {
    report: 0, begin, end, grain: 1, lanes, names,
    start: Float64Array.from(slices, (one) => one.start), duration: Float64Array.from(slices, (one) => one.duration),
    name: Uint32Array.from(slices, (one) => names.findIndex((name) => name.text === one.name)), row: Uint32Array.from(slices, (_, index) => index),
    slices: Uint32Array.from(slices, (one) => one.slices ?? 1), busy: Float32Array.from(slices, (one) => one.busy ?? 1),
    link: Uint32Array.from(slices, (one) => one.link ?? 0xffffffff),
  };
}
