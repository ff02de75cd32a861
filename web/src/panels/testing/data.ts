/** A small report for tests, by hand. */
import type { FlameNode, Located, Meta, TrackNode } from "../../data/types";

export function located(row: number, start: number, duration: number, name = "kernel", more: Partial<Located> = {}): Located {
  return { report: 0, table: "kernels", process: 1, row, track: 3, lane: 0, start, duration, name, ...more };
}

export function node(name: string, value: number, children: FlameNode[] = []): FlameNode {
  return { name, value, self: value - children.reduce((sum, child) => sum + child.value, 0), children };
}

export const HITS = [located(1, 100, 10), located(2, 300, 10), located(3, 300, 20, "kernel", { track: 4 }), located(4, 900, 10)];

export function reportMeta(reports = 1): Meta {
  const one = (report: number) => ({ report, name: `run${report}`, command: "train", hosts: ["h"], begin: 0, end: 1000, events: 4, realtime: null, generation: 1, live: false, diagnostics: 0, warnings: 0 });
  return { version: 1, title: "run", reports: Array.from({ length: reports }, (_, i) => one(i)), features: [] };
}

export const TREE: TrackNode[] = [
  {
    id: "host:0", kind: "host", name: "h",
    children: [
      {
        id: "host:0/gpu:0", kind: "gpu", name: "GPU 0",
        children: [
          { id: "k", kind: "stream", name: "Stream 7", children: [], track: { report: 0, track: 3, kind: "slices", layer: "kernels", lanes: 1, events: 4, busy: 50, begin: 0, end: 1000 } },
          { id: "m", kind: "counter", name: "Memory", children: [], track: { report: 0, track: 9, kind: "counter", layer: "gpu_memory", lanes: 1, events: 2, busy: 0, begin: 0, end: 1000, unit: "bytes", low: 0, high: 2048 } },
        ],
      },
    ],
  },
];
