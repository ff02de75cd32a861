/** The time axis. */
import { describe, expect, it } from "vitest";
import { roundStep, ticksOf, timeLabel } from "./ticks";

describe("roundStep", () => {
  it.each([[0.3, 1], [1, 1], [1.5, 2], [2, 2], [3, 5], [7, 10], [120, 200], [999, 1000], [1001, 2000]])("rounds %d up to %d", (least, step) => {
    expect(roundStep(least)).toBe(step);
  });
});

describe("timeLabel", () => {
  it.each([
    [0, 1, "0 ns"], [12, 1, "12 ns"], [1500, 1, "1.5 us"], [2_500_000, 1000, "2.5 ms"], [12_345_678_901, 1, "12.345678901 s"],
    [12_345_678_901, 1e6, "12.346 s"], [-1500, 1, "−1.5 us"], [3e9, 1e9, "3 s"],
  ])("writes %d to %d ns as %s", (time, step, text) => expect(timeLabel(time, step)).toBe(text));
});

describe("ticksOf", () => {
  it("puts labels apart and covers the view", () => {
    for (const width of [300, 1280, 3840]) {
      for (const length of [10, 1e3, 7e4, 3e6, 1e9, 6e10]) {
        const axis = ticksOf({ begin: 17, end: 17 + length }, width);
        const labelled = axis.ticks.filter((tick) => tick.label !== "");
        const perNs = width / length;
        for (let at = 1; at < labelled.length; at += 1) expect((labelled[at]!.time - labelled[at - 1]!.time) * perNs).toBeGreaterThanOrEqual(Math.min(109, width / 10));
        expect(axis.ticks.length).toBeLessThan(400);
        expect(axis.step).toBeGreaterThanOrEqual(1);
      }
    }
  });
  it("uses the unit of the step", () => {
    expect(ticksOf({ begin: 0, end: 1e9 }, 1100).ticks.map((tick) => tick.label)).toContain("200 ms");
    expect(ticksOf({ begin: 0, end: 1e10 }, 1100).ticks.map((tick) => tick.label)).toContain("2 s");
  });
  it("counts from a base where the times are long and the steps short", () => {
    const axis = ticksOf({ begin: 12_345_678_000, end: 12_345_679_000 }, 1000);
    expect(axis.base).toBe("12.345678 s");
    expect(axis.ticks.filter((tick) => tick.label !== "").map((tick) => tick.label)).toContain("+200 ns");
  });
  it("writes round times out where labels count from them", () => {
    const labels = ticksOf({ begin: 12_345_677_500, end: 12_345_679_500 }, 1000).ticks.flatMap((tick) => (tick.label === "" ? [] : [tick.label]));
    expect(labels).toContain("12.345678 s");
    expect(labels).toContain("12.345679 s");
    expect(labels.filter((label) => label === "+500 ns").length).toBe(3);
  });
  it("gives distinct labels between round times at every depth", () => {
    for (let length = 10; length < 1e11; length *= 3) {
      const labels = ticksOf({ begin: 4.2e10, end: 4.2e10 + length }, 1400).ticks.flatMap((tick) => (tick.label === "" ? [] : [tick.label]));
      const seen = new Set<string>();
      for (const label of labels) {
        if (!label.startsWith("+")) seen.clear();
        expect(seen).not.toContain(label);
        seen.add(label);
      }
    }
  });
  it("has nothing to say of no time or no room", () => {
    expect(ticksOf({ begin: 5, end: 5 }, 100).ticks).toEqual([]);
    expect(ticksOf({ begin: 5, end: 9 }, 0).ticks).toEqual([]);
  });
});
