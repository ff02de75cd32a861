/** Tests that words on the canvas get a free place. */
import { expect, it } from "vitest";
import { freeBox } from "./tag";

const CANVAS = { width: 100, height: 100 };
const BOX = { x: 10, y: 10, width: 30, height: 10 };

it("stays where it is wanted where that is free", () => {
  expect(freeBox(BOX, CANVAS, [])).toEqual({ left: 10, top: 10, right: 40, bottom: 20 });
  expect(freeBox(BOX, CANVAS, [{ left: 50, top: 0, right: 90, bottom: 90 }]).top).toBe(10);
});

it("is kept on the canvas", () => {
  expect(freeBox({ ...BOX, x: 90, y: 98 }, CANVAS, [])).toEqual({ left: 70, top: 90, right: 100, bottom: 100 });
  expect(freeBox({ ...BOX, x: -90, y: -8 }, CANVAS, [])).toEqual({ left: 0, top: 0, right: 30, bottom: 10 });
});

it("makes way for others, upwards in the lower half", () => {
  const first = freeBox(BOX, CANVAS, []);
  expect(freeBox(BOX, CANVAS, [first]).top).toBe(21);
  const low = freeBox({ ...BOX, y: 80 }, CANVAS, []);
  expect(freeBox({ ...BOX, y: 80 }, CANVAS, [low]).bottom).toBe(79);
});
