/** Tests moving the view. */
import { describe, expect, it } from "vitest";
import { fitEvent, fitTo, hold, ordered, panBy, snap, wheelFactor, zoomAt } from "./navigate";

const VIEW = { begin: 1000, end: 3000 };

describe("zoomAt", () => {
  it("keeps the time under the pointer where it is", () => {
    const near = zoomAt(VIEW, 1500, 0.5);
    expect(near.end - near.begin).toBeCloseTo(1000);
    expect((1500 - near.begin) / (near.end - near.begin)).toBeCloseTo(0.25);
  });
  it("comes back where it began", () => {
    const back = zoomAt(zoomAt(VIEW, 1234, 0.37), 1234, 1 / 0.37);
    expect(back.begin).toBeCloseTo(VIEW.begin);
    expect(back.end).toBeCloseTo(VIEW.end);
  });
  it("stops at ten nanoseconds", () => {
    const least = zoomAt({ begin: 0, end: 12 }, 6, 0.001);
    expect(least.end - least.begin).toBe(10);
  });
});

describe("fitEvent", () => {
  it("fills the view with an event", () => expect(fitEvent(VIEW, 100, 1000)).toEqual(fitTo({ begin: 100, end: 1100 })));
  it("comes ten times nearer to a moment, never to nothing", () => {
    expect(fitEvent(VIEW, 1500, 0)).toEqual({ begin: 1400, end: 1600 });
    expect(fitEvent({ begin: 0, end: 10 }, 5, 0)).toEqual({ begin: 0, end: 10 });
  });
});

describe("hold", () => {
  const whole = { begin: 0, end: 10_000 };
  it("lets a view within the recording be", () => expect(hold(VIEW, whole)).toEqual(VIEW));
  it("leaves a quarter of the view with something to see", () => {
    const right = hold({ begin: 50_000, end: 52_000 }, whole);
    expect(right).toEqual({ begin: 9500, end: 11_500 });
    const left = hold({ begin: -50_000, end: -48_000 }, whole);
    expect(left).toEqual({ begin: -1500, end: 500 });
  });
  it("never shows more than twice the recording", () => {
    const wide = hold({ begin: -100_000, end: 100_000 }, whole);
    expect(wide.end - wide.begin).toBe(20_000);
  });
  it("says nothing of a recording without length", () => expect(hold(VIEW, { begin: 0, end: 0 })).toEqual(VIEW));
});

describe("spans", () => {
  it("pans by shares of the view", () => expect(panBy(VIEW, -0.5)).toEqual({ begin: 0, end: 2000 }));
  it("gives a fitted event air, also one that lasts no time", () => {
    const { begin, end } = fitTo({ begin: 100, end: 200 }, 0.1);
    expect([begin, end]).toEqual([90, 210]);
    const instant = fitTo({ begin: 100, end: 100 });
    expect(instant.begin).toBeLessThan(100);
    expect(instant.end).toBeGreaterThan(100);
  });
  it("orders ends", () => expect(ordered(5, 3)).toEqual({ begin: 3, end: 5 }));
});

describe("snap", () => {
  it("takes the nearest within reach", () => expect(snap(100, [90, 104, 99], 5)).toBe(99));
  it("leaves what nothing is near", () => expect(snap(100, [80, 120], 5)).toBe(100));
});

it("turns the wheel as far for mice as they turn, and not endlessly", () => {
  expect(wheelFactor(100)).toBeGreaterThan(1);
  expect(wheelFactor(100) * wheelFactor(-100)).toBeCloseTo(1);
  expect(wheelFactor(1e9)).toBe(wheelFactor(240));
});
