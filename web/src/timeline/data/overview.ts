/** The busy share of GPUs and CPUs over the whole run, for the minimap. */
import type { Plot, Rects, Track, TrackNode } from "../../data/types";
import { addBusy } from "../draw/pack";
import { tracksOf } from "../layout/rows";
import type { Scale } from "../layout/scale";

/** Maximum number of requested tracks of one side: the first ones stand for a run of a thousand ranks. */
const MOST = 96;
const GPU = new Set(["kernels", "memcpys", "memsets", "graphs"]);
/** The counters that say how many CPUs each process used. */
const USED = "cpu_use";
/** Without them, what says that a thread worked, best first: the first that a report has is taken. */
const CPU: readonly (readonly string[])[] = [["python_calls"], ["nvtx_ranges", "cuda_api"], ["osrt"]];

export interface Sides {
  /** Tracks by device, so that streams of one do not count twice. */
  gpu: Map<string, Track[]>;
  cpu: Map<string, Track[]>;
  /** Counters of CPUs that processes used; where there are some, `cpu` is empty. */
  used: Track[];
}

function gather(nodes: readonly TrackNode[], process: number, device: string, wanted: ReadonlySet<string>, by: "device" | "node", into: Map<string, Track[]>): void {
  for (const node of nodes) {
    const own = node.device === undefined ? device : String(node.device);
    const track = node.track;
    if (track !== undefined && wanted.has(track.layer)) {
      const key = by === "device" ? own : `${process}/${node.id}`;
      into.set(key, [...(into.get(key) ?? []), track]);
    }
    gather(node.children, node.process ?? process, own, wanted, by, into);
  }
}

export function sidesOf(tree: readonly TrackNode[]): Sides {
  const gpu = new Map<string, Track[]>();
  gather(tree, 0, "", GPU, "device", gpu);
  const tracks = tree.flatMap(tracksOf).filter((one) => one.events > 0);
  const used = tracks.filter((one) => one.layer === USED).sort((a, b) => (b.high ?? 0) - (a.high ?? 0)).slice(0, MOST);
  const has = new Set(tracks.map((one) => one.layer));
  const layers = used.length > 0 ? undefined : CPU.find((some) => some.some((layer) => has.has(layer)));
  const cpu = new Map<string, Track[]>();
  if (layers !== undefined) gather(tree, 0, "", new Set(layers), "node", cpu);
  return { gpu: cutOff(gpu), cpu: cutOff(cpu), used };
}

function cutOff(groups: Map<string, Track[]>): Map<string, Track[]> {
  // The busiest ones tell most.
  const sorted = [...groups.entries()].sort(([, a], [, b]) => sum(b) - sum(a));
  let left = MOST;
  return new Map(sorted.filter(([, tracks]) => (left -= tracks.length) >= 0));
}

function sum(tracks: readonly Track[]): number {
  return tracks.reduce((all, one) => all + one.busy, 0);
}

/** CPUs used in each column, by all processes together: the mean over its time. */
export function usedOf(plots: readonly Plot[], begin: number, end: number, columns: number): Float32Array {
  const all = new Float32Array(columns);
  const perNs = columns / (end - begin);
  for (const { time, low, high } of plots) {
    time.forEach((start, at) => {
      const value = (low[at]! + high[at]!) / 2;
      const left = Math.max((start - begin) * perNs, 0);
      const right = Math.min(((time[at + 1] ?? end) - begin) * perNs, columns);
      if (!(value > 0)) return;
      for (let column = Math.floor(left); column < right; column += 1) {
        all[column] = all[column]! + value * (Math.min(right, column + 1) - Math.max(left, column));
      }
    });
  }
  return all;
}

/** Share of the time, 0 to 1, in which something ran in each column; the mean over the groups. */
export function busyOf(rects: Rects, groups: ReadonlyMap<string, readonly Track[]>, columns: number): Float32Array {
  const mean = new Float32Array(columns);
  if (groups.size === 0) return mean;
  const scale: Scale = { begin: rects.begin, grain: (rects.end - rects.begin) / columns, width: columns };
  const lanes = new Map<number, { rects: Rects; first: number; count: number }>();
  for (const { track, lane, first, count } of rects.lanes) if (lane === 0) lanes.set(track, { rects, first, count });
  for (const tracks of groups.values()) {
    const one = new Float32Array(columns);
    for (const { track } of tracks) {
      const run = lanes.get(track);
      if (run !== undefined) addBusy(one, run, scale, 0);
    }
    for (let column = 0; column < columns; column += 1) mean[column] = mean[column]! + one[column]! / groups.size;
  }
  return mean;
}
