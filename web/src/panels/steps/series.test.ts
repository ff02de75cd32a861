/** Steps as columns of plots. */
import { expect, test } from "vitest";
import type { Step } from "./series";
import { beside, ceiling, owners, padded, partsOf, spread, stacked, taken } from "./series";

function step(number: number, length: number, parts: Record<string, number> = {}, process = 1, rank: number | null = null): Step {
  return { number, process, rank, start: number * 1000, end: number * 1000 + length, parts };
}

test("parts stack up to the whole step, what no part covers is the rest", () => {
  const steps = [step(0, 100, { data: 40, forward: 0, backward: 50 }), step(1, 100, { data: 10, forward: 0, backward: 90 })];
  expect(partsOf(steps)).toEqual(["data", "backward", "other"]);
  expect(taken(steps[0]!, "other")).toBe(10);
  expect(stacked(steps, partsOf(steps))).toEqual([[0, 1], [100, 100], [90, 100], [40, 10]]);
});

test("steps of several processes one after the other", () => {
  expect(stacked([step(0, 5, {}, 1), step(0, 7, {}, 2)], [], true)).toEqual([[0, 1], [5, 7]]);
});

test("steps without parts are one series", () => {
  expect(partsOf([step(0, 5)])).toEqual([]);
  expect(stacked([step(0, 5), step(1, 7)], [])).toEqual([[0, 1], [5, 7]]);
});

test("several processes beside each other, nothing where one has no such step", () => {
  const steps = [step(0, 5, {}, 2, 1), step(1, 6, {}, 2, 1), step(1, 9, {}, 1, 0), step(3, 4, {}, 1, 0)];
  expect(owners(steps)).toEqual([{ process: 1, title: "rank 0" }, { process: 2, title: "rank 1" }]);
  expect(beside(steps, [1, 2])).toEqual([[0, 1, 3], [null, 9, 4], [5, 6, null]]);
});

test("one step alone stands in the middle", () => {
  expect(padded([[7], [5], [null]])).toEqual([[6, 7, 8], [null, 5, null], [null, null, null]]);
  expect(padded([[7, 8], [5, 6]])).toEqual([[7, 8], [5, 6]]);
});

test("figures", () => {
  expect(spread([])).toBeNull();
  expect(spread([1, 2, 3, 4].map((length) => step(0, length)))).toEqual({ count: 4, mean: 2.5, median: 2.5, p95: expect.closeTo(3.85), minimum: 1, maximum: 4 });
});

test("a plot is cut where one step is far above all others", () => {
  expect(ceiling([])).toBeNull();
  expect(ceiling([4, 5, 6, 12].map((length) => step(0, length)))).toBeNull();
  expect(ceiling([4, 5, 6, 8, 400].map((length) => step(0, length)))).toBe(10);
});
