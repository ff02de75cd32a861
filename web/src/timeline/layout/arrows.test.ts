/** Arrows between events. */
import { describe, expect, it } from "vitest";
import { arrowBetween, bend } from "./arrows";

const BOX = { left: 0, top: 0, right: 100, bottom: 50 };

describe("arrowBetween", () => {
  it("goes from one to the other where both are seen", () => {
    expect(arrowBetween({ x: 10, y: 5 }, { x: 90, y: 40 }, BOX)).toEqual({ from: { x: 10, y: 5 }, to: { x: 90, y: 40 }, beyond: null });
  });
  it.each([
    [{ x: 300, y: 20 }, "right", { x: 100, y: 20 }], [{ x: -5, y: 20 }, "left", { x: 0, y: 20 }], [{ x: 20, y: 500 }, "down", { x: 20, y: 50 }],
    [{ x: 20, y: -1 }, "up", { x: 20, y: 0 }], [{ x: 300, y: 500 }, "right", { x: 100, y: 50 }],
  ] as const)("ends on the edge before %o", (to, beyond, end) => {
    expect(arrowBetween({ x: 50, y: 25 }, to, BOX)).toEqual({ from: { x: 50, y: 25 }, to: end, beyond });
  });
  it("comes from an edge, too", () => {
    expect(arrowBetween({ x: -50, y: 25 }, { x: 50, y: 25 }, BOX)).toEqual({ from: { x: 0, y: 25 }, to: { x: 50, y: 25 }, beyond: null });
  });
  it("is not there where both ends are beyond one side", () => {
    expect(arrowBetween({ x: -50, y: 25 }, { x: -10, y: 30 }, BOX)).toBeNull();
  });
});

it("leaves to the right and comes from the left, also back in time", () => {
  const [first, second] = bend({ from: { x: 80, y: 0 }, to: { x: 20, y: 40 }, beyond: null });
  expect(first.x).toBeGreaterThan(80);
  expect(second.x).toBeLessThan(20);
});
