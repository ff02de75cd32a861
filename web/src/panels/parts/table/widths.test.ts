/** Widths of columns. */
import { expect, test } from "vitest";
import type { Column } from "../../../data/types";
import { widths } from "./widths";

const COLUMNS: Column[] = [{ name: "Name", unit: null, kind: "text" }, { name: "N", unit: null, kind: "number" }];

test("figures as wide as they are, text takes the rest", () => {
  expect(widths(COLUMNS, [["0123456789", 1]], 100)).toEqual([94, 6]);
});

test("without text nothing is drawn out", () => {
  expect(widths([COLUMNS[1]!, COLUMNS[1]!], [[1, 2]], 100)).toEqual([6, 6]);
});

test("long names give way, figures do not", () => {
  const [name, figure] = widths(COLUMNS, [["x".repeat(500), 123_456_789_012]], 60);
  expect(name!).toBeLessThanOrEqual(60 - figure!);
  expect(figure).toBe("123,456,789,012".length + 3);
});
