/** Bars of histograms. */
import { expect, test } from "vitest";
import { bars, placed } from "./histogram";

test("bars of equal width, the highest fills the height, heights by the root", () => {
  const all = bars([0, 10, 20, 30], [100, 25, 0]);
  expect(all.map((bar) => bar.height)).toEqual([1, 0.5, 0]);
  expect(all[1]).toMatchObject({ x: 1 / 3, width: 1 / 3, label: "10 ns to 20 ns: 25" });
});

test("no counts, no trouble", () => {
  expect(bars([0, 1], [0])[0]!.height).toBe(0);
});

test("the place of a value, also among bins of several sizes and beyond them", () => {
  expect(placed([0, 10, 100], 5)).toBe(0.25);
  expect(placed([0, 10, 100], 55)).toBe(0.75);
  expect(placed([0, 10, 100], -1)).toBe(0);
  expect(placed([0, 10, 100], 1000)).toBe(1);
  expect(placed([5, 5], 5)).toBe(0);
  expect(placed([], 5)).toBe(0);
});
