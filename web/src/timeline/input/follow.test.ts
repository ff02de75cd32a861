/** Tests that a selection made anywhere is brought into view. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { hidden, pinned, selected, toggled, trees } from "../../app/state";
import type { TrackNode } from "../../data/types";
import { layout, scroll, size } from "../local";
import { node, track } from "../testing";
import { bringRow, follow } from "./follow";

const TREE: TrackNode[] = [
  ...Array.from({ length: 60 }, (_, at) => node(`row${at}`, { track: track(100 + at) })),
  node("gpu", { children: [node("context", { children: [node("stream", { track: track(7) })] })] }),
];
const EVENT = { report: 0, table: "kernels", process: 0, row: 1, track: 7, lane: 0, start: 5, duration: 1, name: "gemm" };
let stop: () => void;

beforeEach(() => {
  trees.value = [TREE];
  [selected.value, scroll.value, pinned.value, hidden.value, toggled.value] = [null, 0, [], new Set(), new Set()];
  size.value = { width: 1000, height: 400, ratio: 1 };
  stop = follow();
});
afterEach(() => stop());

const shown = (id: string) => layout.value.main.rows.find((row) => row.id === id);

it("opens what hides a track and scrolls to it", () => {
  selected.value = EVENT;
  const row = shown("stream")!;
  expect(row.y - scroll.value).toBeGreaterThanOrEqual(0);
  expect(row.y + row.height - scroll.value).toBeLessThanOrEqual(400);
});

it("shows again what was hidden", () => {
  hidden.value = new Set(["gpu", "row3"]);
  selected.value = EVENT;
  expect(shown("stream")).toBeDefined();
  expect([...hidden.value]).toEqual(["row3"]);
});

it("stays where it is for what is in view", () => {
  selected.value = { ...EVENT, track: 101 };
  expect(scroll.value).toBe(0);
});

it("waits for the tracks, and does not come back to them when they come anew", () => {
  trees.value = [];
  selected.value = EVENT;
  trees.value = [TREE];
  expect(scroll.value).toBeGreaterThan(0);
  scroll.value = 0;
  trees.value = [[...TREE]];
  expect(scroll.value).toBe(0);
});

it("brings a row into view, and lets it be where it is seen", () => {
  const rows = layout.value.main.rows;
  bringRow(rows[2]!);
  expect(scroll.value).toBe(0);
  bringRow(rows[40]!);
  expect(rows[40]!.y + rows[40]!.height - scroll.value).toBeLessThanOrEqual(400);
  expect(rows[40]!.y).toBeGreaterThanOrEqual(scroll.value);
  bringRow(rows[3]!);
  expect(scroll.value).toBe(rows[3]!.y);
});
