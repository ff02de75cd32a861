/** Tests finding the event under the pointer. */
import { describe, expect, it } from "vitest";
import type { Tiles } from "../data/tiles";
import { node, rects, track } from "../testing";
import { edgesAround, find, hit, neighbour, sliceAt } from "./hit";
import { laneTop, layOut } from "./rows";

const ANSWER = rects([
  { track: 1, start: 100, duration: 50, name: "a" },
  { track: 1, start: 150, duration: 10, name: "b" },
  { track: 1, start: 300, duration: 0, name: "c" },
  { track: 1, lane: 1, start: 110, duration: 20, name: "d" },
]);
const RUN = { rects: ANSWER, first: 0, count: 3 };
const TILE = { begin: 0, end: 1000, grain: 1, generation: 0, isWhole: true, plot: null, used: 0, lanes: [RUN, { rects: ANSWER, first: 3, count: 1 }] };
const TILES: Tiles = [TILE];
const ROW = layOut([[node("x", { track: track(1, { lanes: 2 }) })]], new Set(), []).main.rows[0]!;

describe("sliceAt", () => {
  it.each([[99, null], [100, 0], [149, 0], [150, 1], [159, 1], [161, null], [300, 2], [1000, null]])("at %d finds %s", (time, index) => {
    expect(sliceAt(RUN, time, 0)).toBe(index);
  });
  it("reaches for what is near, the nearest first", () => {
    expect(sliceAt(RUN, 95, 5)).toBe(0);
    expect(sliceAt(RUN, 163, 5)).toBe(1);
    expect(sliceAt(RUN, 302, 5)).toBe(2);
    expect(sliceAt(RUN, 230, 5)).toBeNull();
  });
});

describe("hit", () => {
  const at = (y: number, time: number) => hit(ROW, y, time, 0, () => TILES);
  it("goes by lane and time", () => {
    expect(at(laneTop(ROW, 0) + 3, 120)).toMatchObject({ lane: 0, index: 0 });
    expect(at(laneTop(ROW, 1) + 3, 120)).toMatchObject({ lane: 1, index: 3 });
    expect(at(laneTop(ROW, 1) + 3, 200)).toBeNull();
    expect(at(ROW.height + 5, 120)).toBeNull();
  });
  it("misses what is not loaded", () => expect(hit(ROW, laneTop(ROW, 0) + 3, 120, 0, () => undefined)).toBeNull());
});

it("walks along a lane and stops at its ends", () => {
  expect([neighbour(RUN, 0, -1), neighbour(RUN, 0, 1), neighbour(RUN, 2, 1)]).toEqual([null, 1, null]);
});

it("finds an event again by its begin and row", () => {
  expect(find(RUN, 150, 1)).toBe(1);
  expect(find(RUN, 150, 7)).toBeNull();
});

it("gives the edges to snap to", () => expect(edgesAround(RUN, 140, 170)).toEqual([100, 150, 150, 160]));
