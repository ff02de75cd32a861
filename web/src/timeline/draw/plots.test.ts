/** Counters. */
import { describe, expect, it } from "vitest";
import type { Plot } from "../../data/types";
import { scaleOf } from "../layout/scale";
import { Boxes } from "./pack";
import { packPlot, rangeOf, valueAt, valueLabel } from "./plots";

const PLOT: Plot = {
  track: 1, begin: 0, end: 100, time: Float64Array.of(10, 40, 60), low: Float64Array.of(1, 2, 0), high: Float64Array.of(1, 8, 0), last: Float64Array.of(1, 5, 0),
};

function boxes(of: Boxes): number[][] {
  return Array.from({ length: of.length / 4 }, (_, at) => Array.from(of.data.subarray(at * 4, at * 4 + 4)));
}

function drawn(plot: Plot, from = 0, to = 100) {
  const [area, band, line] = [new Boxes(), new Boxes(), new Boxes()];
  packPlot(area, band, line, plot, scaleOf({ begin: 0, end: 100 }, 100), 0, from, to, { y: 0, height: 10, range: { low: 0, high: 10 } });
  return { area: boxes(area), band: boxes(band), line: boxes(line) };
}

describe("packPlot", () => {
  it("holds a value until the next one, and the last up to the end", () => {
    expect(drawn(PLOT).area).toEqual([[10, 9, 30, 1], [40, 5, 20, 5]]);
    expect(drawn(PLOT).line).toContainEqual([60, 10, 40, 1]);
  });
  it("has a band only where values differ within a pixel", () => expect(drawn(PLOT).band).toEqual([[40, 2, 20, 6]]));
  it("stays within its piece", () => {
    for (const [x, , width] of drawn(PLOT, 20, 50).area) {
      expect(x).toBeGreaterThanOrEqual(20);
      expect(x! + width!).toBeLessThanOrEqual(50);
    }
  });
  it("draws nothing of nothing", () => {
    const empty = { ...PLOT, time: new Float64Array(), low: new Float64Array(), high: new Float64Array(), last: new Float64Array() };
    expect(drawn(empty)).toEqual({ area: [], band: [], line: [] });
  });
});

describe("rangeOf", () => {
  it("begins at zero unless that would flatten it", () => {
    expect(rangeOf({ low: 20, high: 100 }).low).toBe(0);
    expect(rangeOf({ low: 1400, high: 1410 }).low).toBe(1400);
    expect(rangeOf({ low: -5, high: 5 }).low).toBe(-5);
  });
  it("has a height also for a constant", () => {
    for (const value of [0, 7, -3]) {
      const range = rangeOf({ low: value, high: value });
      expect(range.high).toBeGreaterThan(range.low);
    }
  });
});

it("knows the value that holds at a time", () => {
  expect(valueAt(PLOT, 5)).toBeNull();
  expect(valueAt(PLOT, 45)?.last).toBe(5);
  expect(valueAt(PLOT, 200)).toBeNull();
});

it.each([[1536, "bytes", "1.50 KiB"], [73, "%", "73 %"], [1_234_567, "", "1.23 M"], [0, "MHz", "0 MHz"], [-2500, "", "-2.50 k"], [999, "W", "999 W"]])("writes %d %s as %s", (value, unit, text) => {
  expect(valueLabel(value, unit)).toBe(text);
});
