/** Tests cutting answers. */
import { expect, test } from "vitest";
import { countRects, cutPlot, cutRects, firstWhere } from "./cut";
import type { Rects } from "./types";

/** Two tracks: three slices and a mark in lane 0 of track 4, one slice in lane 1, two in track 9. */
function whole(): Rects {
  const start = [0, 100, 250, 300, 110, 50, 400];
  return {
    report: 0,
    begin: 0,
    end: 1000,
    grain: 1,
    lanes: [
      { track: 4, lane: 0, first: 0, count: 4 },
      { track: 4, lane: 1, first: 4, count: 1 },
      { track: 9, lane: 0, first: 5, count: 2 },
    ],
    start: Float64Array.from(start),
    duration: Float64Array.from([100, 50, 0, 200, 10, 20, 100]),
    name: Uint32Array.from([0, 1, 0, 1, 2, 0, 2]),
    row: Uint32Array.from([10, 11, 12, 13, 14, 15, 16]),
    slices: new Uint32Array(7).fill(1),
    busy: new Float32Array(7).fill(1),
    link: new Uint32Array(7).fill(0xffffffff),
    names: ["a", "b", "c"].map((text) => ({ text, color: null })),
  };
}

const rows = (rects: Rects) => Object.fromEntries(rects.lanes.map((one) => [`${one.track}.${one.lane}`, [...rects.row.subarray(one.first, one.first + one.count)]]));

test("what is seen of the asked tracks is there, and nothing else", () => {
  expect(rows(cutRects(whole(), { begin: 120, end: 260, tracks: [4] }))).toEqual({ "4.0": [11, 12] });
  expect(rows(cutRects(whole(), { begin: 0, end: 1000, tracks: [9, 4] }))).toEqual({ "4.0": [10, 11, 12, 13], "4.1": [14], "9.0": [15, 16] });
  expect(rows(cutRects(whole(), { begin: 0, end: 1000, tracks: [] }))).toEqual({});
});

test("a slice that ends where the view begins is not seen, a mark there is", () => {
  expect(rows(cutRects(whole(), { begin: 100, end: 101, tracks: [4] }))).toEqual({ "4.0": [11] });
  expect(rows(cutRects(whole(), { begin: 250, end: 251, tracks: [4] }))).toEqual({ "4.0": [12] });
  expect(rows(cutRects(whole(), { begin: 200, end: 250, tracks: [4] }))).toEqual({});
});

test("columns keep together", () => {
  const cut = cutRects(whole(), { begin: 380, end: 420, tracks: [4, 9] });
  expect(cut.lanes).toEqual([
    { track: 4, lane: 0, first: 0, count: 1 },
    { track: 9, lane: 0, first: 1, count: 1 },
  ]);
  expect([...cut.start]).toEqual([300, 400]);
  expect([...cut.duration]).toEqual([200, 100]);
  expect([...cut.name].map((name) => cut.names[name]?.text)).toEqual(["b", "c"]);
  expect([cut.begin, cut.end]).toEqual([380, 420]);
  expect(countRects(whole(), { begin: 380, end: 420, tracks: [4, 9] })).toBe(2);
});

test("the first index at which something holds", () => {
  const values = [1, 3, 3, 8];
  for (const wanted of [0, 1, 2, 3, 4, 8, 9]) {
    const expected = values.findIndex((value) => value >= wanted);
    expect(firstWhere(0, 4, (at) => values[at]! >= wanted)).toBe(expected < 0 ? 4 : expected);
  }
});

test("a counter keeps the value that lasts into the view", () => {
  const time = Float64Array.from([0, 10, 20, 30]);
  const plot = { track: 1, begin: 0, end: 40, time, low: time, high: time, last: time };
  expect([...cutPlot(plot, 15, 25).last]).toEqual([10, 20]);
  expect([...cutPlot(plot, 20, 21).last]).toEqual([20]);
  expect([...cutPlot(plot, 35, 36).last]).toEqual([30]);
  expect([...cutPlot(plot, -9, 5).last]).toEqual([0]);
});
