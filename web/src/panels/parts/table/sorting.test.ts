/** Sorting and filtering of tables. */
import { expect, test } from "vitest";
import { arranged, turned } from "./sorting";

const ROWS = [["beta", 2, true], ["Alpha", 10, null], ["kernel10", null, false], ["kernel9", -1, true]];

test("as it came, where nothing is asked", () => {
  expect(arranged(ROWS, null, "")).toEqual([0, 1, 2, 3]);
});

test("numbers by size, rows without a value last either way", () => {
  expect(arranged(ROWS, { column: 1, down: true }, "")).toEqual([1, 0, 3, 2]);
  expect(arranged(ROWS, { column: 1, down: false }, "")).toEqual([3, 0, 1, 2]);
});

test("text as people count, small and capital letters alike", () => {
  expect(arranged(ROWS, { column: 0, down: false }, "")).toEqual([1, 0, 3, 2]);
});

test("equal rows stay in their order, whichever way", () => {
  const rows = [["a", 1], ["b", 1], ["c", 1]];
  expect(arranged(rows, { column: 1, down: true }, "")).toEqual([0, 1, 2]);
});

test("words must all occur, in any cell; patterns stand between slashes", () => {
  expect(arranged(ROWS, null, "KERNEL")).toEqual([2, 3]);
  expect(arranged(ROWS, null, "alpha 10")).toEqual([1]);
  expect(arranged(ROWS, null, "/^kernel\\d$/")).toEqual([3]);
  expect(arranged([["a(b"]], null, "/a(/")).toEqual([]); // no pattern: the words "/a(/"
  expect(arranged([["a(b"]], null, "a(")).toEqual([0]);
});

test("a head is clicked three times", () => {
  const first = turned(null, 1, true);
  expect(first).toEqual({ column: 1, down: true });
  const second = turned(first, 1, true);
  expect(second).toEqual({ column: 1, down: false });
  expect(turned(second, 1, true)).toBeNull();
  expect(turned(second, 0, false)).toEqual({ column: 0, down: false });
});
