/** Tests rows of SQL: tables, times, earlier queries. */
import { expect, test } from "vitest";
import type { Table } from "../../data/types";
import { listed, remembered, spanOf } from "./rows";

function table(names: string[], row: (string | number | null)[]): Table {
  return { title: "", columns: names.map((name, i) => ({ name, unit: null, kind: typeof row[i] === "string" ? "text" : "number" })), rows: [row] };
}

test("columns by table", () => {
  expect(listed({ title: "", columns: [], rows: [["a", "x", "INT"], ["a", "y", "TEXT"], ["b", "z", "INT"]] })).toEqual([
    { name: "a", columns: [{ name: "x", type: "INT" }, { name: "y", type: "TEXT" }] },
    { name: "b", columns: [{ name: "z", type: "INT" }] },
  ]);
});

test("when a row is", () => {
  expect(spanOf(table(["name", "start", "end"], ["k", 5, 9]), 0)).toEqual({ start: 5, end: 9 });
  expect(spanOf(table(["start (ns)", "duration (ns)"], [5, 9]), 0)).toEqual({ start: 5, end: 14 });
  expect(spanOf(table(["Start"], [5]), 0)).toEqual({ start: 5, end: 5 });
  expect(spanOf(table(["start"], [null]), 0)).toBeNull();
  expect(spanOf(table(["started", "restart"], [5, 6]), 0)).toBeNull();
  expect(spanOf(table(["start"], ["5"]), 0)).toBeNull();
  expect(spanOf(table(["start"], [5]), 3)).toBeNull();
});

test("the newest first, none twice, not for ever", () => {
  expect(remembered(["a", "b"], "b")).toEqual(["b", "a"]);
  expect(remembered(["a", "b"], "c", 2)).toEqual(["c", "a"]);
});
