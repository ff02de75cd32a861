/** Chooses what the panel compares: one marked range, two of them, or one range in two reports. */
import type { Span } from "../../data/source";
import type { Selected, Table, Track, TrackNode } from "../../data/types";
import { family } from "../parts/family";

export interface Side {
  /** "A", "B"; "" where there is one. */
  letter: string;
  report: number;
  /** On the axis of the page, and in the times of the report. */
  range: Span;
  span: Span;
}

/** Return the sides; `offsets` are added to times of reports to be on the axis. */
export function sides(ranges: readonly Span[], report: number, reports: number, offsets: readonly number[], across: boolean): Side[] {
  const side = (letter: string, of: number, range: Span): Side => {
    const offset = offsets[of] ?? 0;
    return { letter, report: of, range, span: { begin: range.begin - offset, end: range.end - offset } };
  };
  const first = ranges[0];
  if (first === undefined) return [];
  if (ranges.length > 1) return ranges.slice(0, 2).map((range, i) => side(i === 0 ? "A" : "B", report, range));
  if (across && reports > 1) return [side("A", 0, first), side("B", 1, first)];
  return [side("", report, first)];
}

/** Return every track with slices, with the words of where it is. */
export function tracksOf(tree: readonly TrackNode[]): { track: Track; path: string }[] {
  const found: { track: Track; path: string }[] = [];
  const walk = (nodes: readonly TrackNode[], above: readonly string[]) => {
    for (const node of nodes) {
      const path = [...above, node.name];
      if (node.track !== undefined && node.track.kind !== "counter") found.push({ track: node.track, path: path.slice(-3).join(" › ") });
      walk(node.children, path);
    }
  };
  walk(tree, []);
  return found;
}

type Row = Selected["names"][number];

/** Join rows of one layer whose names are of one family, most time first. */
export function joined(rows: readonly Row[], layer: string): Row[] {
  const all = new Map<string, Row>();
  for (const row of rows) {
    if (layer !== "" && row.layer !== layer) continue;
    const name = family(row.name);
    const key = `${row.layer}\n${name}`;
    const before = all.get(key);
    if (before === undefined) all.set(key, { ...row, name });
    else {
      const [total, times] = [before.total + row.total, before.count + row.count];
      all.set(key, { ...before, total, count: times, mean: total / Math.max(times, 1), maximum: Math.max(before.maximum, row.maximum) });
    }
  }
  return [...all.values()].sort((a, b) => b.total - a.total || b.count - a.count);
}

/** Sums by name of one side. */
export function namesTable(one: Selected, layer: string): Table {
  const rows = joined(one.names, layer);
  const length = Math.max(one.end - one.begin, 1);
  return {
    title: "By name",
    columns: [
      { name: "Name", unit: null, kind: "text" },
      { name: "Of range", unit: "%", kind: "number" },
      { name: "Total", unit: "ns", kind: "number" },
      { name: "Count", unit: null, kind: "number" },
      { name: "Mean", unit: "ns", kind: "number" },
      { name: "Max", unit: "ns", kind: "number" },
      { name: "Layer", unit: null, kind: "text" },
    ],
    // Samples and marks are moments: how often is all that is known of them here.
    rows: rows.map((row) => (row.maximum > 0 ? [row.name, (row.total / length) * 100, row.total, row.count, row.mean, row.maximum, row.layer] : [row.name, null, null, row.count, null, null, row.layer])),
  };
}

/** Two sides by name: what grew, what shrank, greatest change first. */
export function comparedNames(a: Selected, b: Selected, layer: string): Table {
  const both = new Map<string, { layer: string; name: string; a: Row | null; b: Row | null }>();
  for (const row of joined(a.names, layer)) both.set(`${row.layer}\n${row.name}`, { layer: row.layer, name: row.name, a: row, b: null });
  for (const row of joined(b.names, layer)) {
    const key = `${row.layer}\n${row.name}`;
    both.set(key, { layer: row.layer, name: row.name, a: both.get(key)?.a ?? null, b: row });
  }
  const rows = [...both.values()]
    .map((row) => {
      const [before, after] = [row.a?.total ?? 0, row.b?.total ?? 0];
      const change = before > 0 ? (after / before - 1) * 100 : null;
      return [row.name, before, after, after - before, change === null ? null : Math.round(change * 10) / 10, row.a?.count ?? 0, row.b?.count ?? 0, row.layer] as Table["rows"][number];
    })
    .sort((x, y) => Math.abs(y[3] as number) - Math.abs(x[3] as number));
  return {
    title: "A and B by name",
    columns: [
      { name: "Name", unit: null, kind: "text" },
      { name: "A", unit: "ns", kind: "number" },
      { name: "B", unit: "ns", kind: "number" },
      { name: "B − A", unit: "ns", kind: "number" },
      { name: "Change, %", unit: null, kind: "number" },
      { name: "Count A", unit: null, kind: "number" },
      { name: "Count B", unit: null, kind: "number" },
      { name: "Layer", unit: null, kind: "text" },
    ],
    rows,
  };
}

/** Of each side. */
interface Shares {
  busy: (number | null)[];
  events: (number | null)[];
}

/** Busy shares of tracks, of one side or of both; tracks in which nothing happened are left out. */
export function tracksTable(answers: readonly Selected[], paths: readonly ReadonlyMap<number, string>[]): Table {
  const rows = new Map<string, Shares>();
  for (const [side, answer] of answers.entries()) {
    for (const one of answer.tracks) {
      if (one.events === 0 && one.busy === 0) continue;
      const path = paths[side]!.get(one.track) ?? `track ${one.track}`;
      let row = rows.get(path);
      if (row === undefined) rows.set(path, (row = { busy: answers.map(() => null), events: answers.map(() => null) }));
      row.busy[side] = one.busy * 100;
      row.events[side] = one.events;
    }
  }
  const letters = answers.length > 1 ? [" A", " B"] : [""];
  return {
    title: "Tracks",
    columns: [
      { name: "Track", unit: null, kind: "text" },
      ...letters.map((letter) => ({ name: `Busy${letter}`, unit: "%", kind: "number" as const })),
      ...letters.map((letter) => ({ name: `Events${letter}`, unit: null, kind: "number" as const })),
    ],
    rows: [...rows].sort((x, y) => Math.max(...y[1].busy.map((v) => v ?? 0)) - Math.max(...x[1].busy.map((v) => v ?? 0))).map(([path, row]) => [path, ...row.busy, ...row.events]),
  };
}
