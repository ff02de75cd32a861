/** Tests the choice of ranges to compare. */
import { expect, test } from "vitest";
import type { Selected } from "../../data/types";
import { TREE } from "../testing/data";
import { comparedNames, namesTable, sides, tracksOf, tracksTable } from "./sides";

const A = { begin: 100, end: 200 };
const B = { begin: 300, end: 500 };
type Row = Selected["names"][number];
const row = (name: string, total: number, layer = "kernels"): Row => ({ layer, name, count: 1, total, mean: total, maximum: total });
const selected = (names: Row[], tracks: Selected["tracks"] = []): Selected => ({ begin: 0, end: 100, names, tracks });

test("one range, two ranges, one range of two reports", () => {
  expect(sides([], 0, 1, [0], false)).toEqual([]);
  expect(sides([A], 1, 2, [0, 50], false)).toEqual([{ letter: "", report: 1, range: A, span: { begin: 50, end: 150 } }]);
  expect(sides([A, B], 0, 2, [0, 50], true).map((one) => [one.letter, one.report, one.span])).toEqual([["A", 0, A], ["B", 0, B]]);
  expect(sides([A], 0, 2, [0, 50], true).map((one) => [one.letter, one.report, one.span.begin])).toEqual([["A", 0, 100], ["B", 1, 50]]);
});

test("tracks with slices, no counters", () => {
  expect(tracksOf(TREE).map((one) => [one.track.track, one.path])).toEqual([[3, "h › GPU 0 › Stream 7"]]);
});

test("sums by name, of one layer on wish", () => {
  const table = namesTable(selected([row("k", 50), row("r", 20, "nvtx_ranges")]), "kernels");
  expect(table.rows).toEqual([["k", 50, 50, 1, 50, 50, "kernels"]]);
});

test("moments have no time, the most frequent first", () => {
  const table = namesTable(selected([row("seldom", 0, "samples"), { ...row("often", 0, "samples"), count: 9 }, row("k", 50)]), "");
  expect(table.rows).toEqual([["k", 50, 50, 1, 50, 50, "kernels"], ["often", null, null, 9, null, null, "samples"], ["seldom", null, null, 1, null, null, "samples"]]);
});

test("numbered operations are one kind of work", () => {
  const table = namesTable(selected([row("aten::to, op_id = 1", 30, "nvtx_ranges"), row("aten::mm, seq = 7, op_id = 9", 40, "nvtx_ranges"), row("aten::to, op_id = 22", 20, "nvtx_ranges")]), "");
  expect(table.rows.map((one) => one.slice(0, 6))).toEqual([["aten::to", 50, 50, 2, 25, 30], ["aten::mm", 40, 40, 1, 40, 40]]);
});

test("two ranges by name: the greatest change first, what is in one alone too", () => {
  const table = comparedNames(selected([row("same", 10), row("gone", 30)]), selected([row("same", 15), row("new", 5)]), "");
  expect(table.rows.map((one) => one.slice(0, 5))).toEqual([["gone", 30, 0, -30, -100], ["same", 10, 15, 5, 50], ["new", 0, 5, 5, null]]);
});

test("tracks of both sides in one row, idle ones left out", () => {
  const paths = [new Map([[1, "GPU 0"], [2, "CPU"]]), new Map([[7, "GPU 0"]])];
  const first = selected([], [{ track: 1, busy: 0.5, events: 4 }, { track: 2, busy: 0, events: 0 }]);
  const second = selected([], [{ track: 7, busy: 0.25, events: 2 }]);
  expect(tracksTable([first, second], paths).rows).toEqual([["GPU 0", 50, 25, 4, 2]]);
});
