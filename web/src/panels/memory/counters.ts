/** Chooses the counters of memory, and puts their points on one time axis. */
import type uPlot from "uplot";
import type { Plot, Track, TrackNode } from "../../data/types";

export interface MemoryTrack {
  track: Track;
  /** What it is, then whose: "Memory of tensors · GPU 0". */
  title: string;
}

/** Return the counters of memory in a tree, the greatest first. */
export function memoryTracks(tree: readonly TrackNode[]): MemoryTrack[] {
  const found: MemoryTrack[] = [];
  const open: { node: TrackNode; above: string[] }[] = tree.map((node) => ({ node, above: [] }));
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { node, above } = one;
    const track = node.track;
    if (track !== undefined && track.kind === "counter" && isMemory(track, node.name)) {
      found.push({ track, title: [node.name, ...(node.detail ? [node.detail] : []), ...above.slice(-1)].join(" · ") });
    }
    for (const child of node.children) open.push({ node: child, above: [...above, node.name] });
  }
  return found.sort((a, b) => (b.track.high ?? 0) - (a.track.high ?? 0) || a.title.localeCompare(b.title));
}

function isMemory(track: Track, name: string): boolean {
  return /memory/.test(track.layer) || (/^(B|bytes|[KMG]i?B)$/i.test(track.unit ?? "") && /mem|heap|alloc|reserved|rss/i.test(name));
}

/** Lay plots on one axis: a value holds until the next one (the caller draws steps); `offset` is added to times. */
export function aligned(plots: readonly Plot[], offset: number, end: number): uPlot.AlignedData {
  const times = new Set<number>();
  for (const plot of plots) for (const time of plot.time) times.add(time);
  if (times.size > 0) times.add(end);
  const x = Float64Array.from(times).sort();
  const columns = plots.map((plot) => {
    const values = Array.from<number | null>({ length: x.length }).fill(null);
    let at = -1;
    for (const [i, time] of x.entries()) {
      while (at + 1 < plot.time.length && plot.time[at + 1]! <= time) at += 1;
      // In its own column the highest value counts, so that peaks stay seen; later on what was last.
      const value = at < 0 ? Number.NaN : plot.time[at] === time ? plot.high[at]! : plot.last[at]!;
      values[i] = Number.isFinite(value) ? value : null;
    }
    return values;
  });
  return [Array.from(x, (time) => time + offset), ...columns];
}
