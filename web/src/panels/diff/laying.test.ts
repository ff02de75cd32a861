/** Tests aligning two reports. */
import { expect, test } from "vitest";
import { current, laid } from "./laying";

const ANCHORS = [{ label: "step 0", a: 100, b: 40 }, { label: "step 1", a: 200, b: 260 }];

test("both times coincide", () => {
  const [first, second] = laid(ANCHORS[1]!);
  expect(ANCHORS[1]!.a + first!).toBe(ANCHORS[1]!.b + second!);
  expect(laid(null)).toEqual([0, 0]);
  expect(laid(null, [5, 30])).toEqual([0, -25]);
});

test("which anchor it is", () => {
  expect(current(ANCHORS, laid(ANCHORS[1]!))).toBe(1);
  expect(current(ANCHORS, [0, 0])).toBe(-1);
  expect(current(ANCHORS, [0, 7])).toBe(-1);
});
