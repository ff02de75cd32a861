/** From slices to rectangles in whole pixels. */
import { describe, expect, it } from "vitest";
import { scaleOf } from "../layout/scale";
import { type Slice, rects } from "../testing";
import { DrawList, FIELDS, type LaneStyle, addBusy, firstAfter, packRun } from "./pack";
import { DIM, FULL, LEVELS } from "./palette";

const STYLE: LaneStyle = { y: 7, height: 16, colors: Uint16Array.of(0, 1, 2, 3), byLink: null, lit: null, point: 0, labels: 20 };

function packed(slices: Slice[], more: { style?: Partial<LaneStyle>; begin?: number; end?: number; width?: number; from?: number; to?: number; offset?: number } = {}) {
  const list = new DrawList();
  const answer = rects(slices);
  const width = more.width ?? 1000;
  const scale = scaleOf({ begin: more.begin ?? 0, end: more.end ?? 1000 }, width);
  packRun(list, { rects: answer, first: 0, count: slices.length }, scale, more.offset ?? 0, more.from ?? 0, more.to ?? width, { ...STYLE, ...more.style });
  const boxes = Array.from({ length: list.rectangles }, (_, at) => {
    const [x, y, wide, height, shade] = list.data.subarray(at * FIELDS, (at + 1) * FIELDS);
    return { shade: shade!, x: x!, y: y!, width: wide!, height: height! };
  });
  return { list, boxes: boxes.toSorted((a, b) => a.x - b.x) };
}

describe("packRun", () => {
  it("puts slices on whole pixels, with a gap where there is room for one", () => {
    const { boxes } = packed([{ track: 1, start: 10.4, duration: 20, name: "a" }, { track: 1, start: 40, duration: 2, name: "b" }]);
    expect(boxes).toEqual([
      { shade: FULL, x: 10, y: 7, width: 19, height: 16 },
      { shade: LEVELS + FULL, x: 40, y: 7, width: 2, height: 16 },
    ]);
  });
  it("gives narrow ones a pixel, and each pixel once", () => {
    const many = Array.from({ length: 500 }, (_, at) => ({ track: 1, start: at * 2, duration: 1, name: "a" }));
    const named = many.map((one, at) => ({ ...one, name: "ab"[at % 2]! }));
    const { boxes } = packed(named, { width: 100 });
    expect(boxes.reduce((sum, box) => sum + box.width, 0)).toBe(100);
    const covered = new Set(boxes.flatMap((box) => Array.from({ length: box.width }, (_, at) => box.x + at)));
    expect(covered.size).toBe(100);
  });
  it("draws narrow ones of a shade that touch as one", () => {
    const many = Array.from({ length: 500 }, (_, at) => ({ track: 1, start: at * 2, duration: 1, name: "a" }));
    expect(packed(many, { width: 100 }).boxes).toEqual([{ shade: FULL, x: 0, y: 7, width: 100, height: 16 }]);
  });
  it("writes a name once over the pieces of a view, without a gap between them", () => {
    const slices = [{ track: 1, start: 50, duration: 400, name: "a" }];
    const [left, right] = [packed(slices, { to: 60 }), packed(slices, { from: 60 })];
    expect(left.list.labels.map(({ x, width }) => [x, width])).toEqual([[50, 399]]);
    expect(right.list.labels).toEqual([]);
    expect([...left.boxes, ...right.boxes].map(({ x, width }) => [x, width])).toEqual([[50, 10], [60, 389]]);
  });
  it("never draws outside of what it may", () => {
    const { boxes } = packed([{ track: 1, start: -500, duration: 5000, name: "a" }], { from: 100, to: 200 });
    expect(boxes).toEqual([{ shade: FULL, x: 100, y: 7, width: 100, height: 16 }]);
  });
  it("moves a report by its offset", () => {
    expect(packed([{ track: 1, start: 10, duration: 5, name: "a" }], { offset: 300 }).boxes[0]!.x).toBe(310);
  });
  it("shades what was joined by its busy share", () => {
    const levels = [0, 0.3, 0.7, 1].map((busy) => packed([{ track: 1, start: 0, duration: 50, name: "a", slices: 9, busy }]).boxes[0]!.shade % LEVELS);
    expect(levels).toEqual(levels.toSorted((a, b) => a - b));
    expect(levels[0]).toBeGreaterThan(0);
    expect(levels.at(-1)).toBe(FULL);
  });
  it("dims what is not lit", () => {
    const { boxes } = packed([{ track: 1, start: 0, duration: 50, name: "a" }, { track: 1, start: 60, duration: 50, name: "b" }], { style: { lit: Uint8Array.of(0, 1) } });
    expect(boxes.map((box) => box.shade % LEVELS)).toEqual([DIM, FULL]);
  });
  it("labels what a long slice with crumbs was joined to", () => {
    expect(packed([{ track: 1, start: 0, duration: 50, name: "a", slices: 2 }]).list.labels.length).toBe(1);
    expect(packed([{ track: 1, start: 0, duration: 5, name: "a", slices: 2 }], { end: 100 }).list.labels.length).toBe(0);
  });
  it("labels single slices that are wide enough", () => {
    const { list } = packed([
      { track: 1, start: 0, duration: 50, name: "a" }, { track: 1, start: 60, duration: 10, name: "b" }, { track: 1, start: 80, duration: 6, name: "c", slices: 2 },
    ]);
    expect(list.labels.map((label) => label.text)).toEqual(["a"]);
  });
  it("keeps points wide enough to be seen", () => {
    expect(packed([{ track: 1, start: 10, duration: 0, name: "a" }], { style: { point: 2 } }).boxes[0]!.width).toBe(2);
  });
  it("colours by link where that is wanted", () => {
    const { boxes } = packed([{ track: 1, start: 10, duration: 5, name: "a", link: 5 }], { style: { byLink: (link) => link * 2 } });
    expect((boxes[0]!.shade / LEVELS) | 0).toBe(10);
  });
  it("forgets the last frame", () => {
    const { list } = packed([{ track: 1, start: 10, duration: 50, name: "a" }]);
    list.clear();
    expect([list.rectangles, list.labels.length]).toEqual([0, 0]);
  });
  it("grows", () => {
    const list = new DrawList();
    for (let at = 0; at < 5000; at += 1) list.add(at, at, 2, 3, 4);
    expect([...list.data.subarray(4999 * FIELDS, 5000 * FIELDS)]).toEqual([4999, 2, 3, 4, 4999]);
  });
});

it("finds the first slice that is still on", () => {
  const answer = rects([{ track: 1, start: 0, duration: 10, name: "a" }, { track: 1, start: 20, duration: 10, name: "b" }]);
  const run = { rects: answer, first: 0, count: 2 };
  expect([0, 9, 10, 25, 30].map((time) => firstAfter(run, time))).toEqual([0, 0, 1, 1, 2]);
});

it("adds busy shares column by column, to one at most", () => {
  const answer = rects([{ track: 1, start: 5, duration: 10, name: "a" }, { track: 1, start: 20, duration: 40, name: "b", slices: 4, busy: 0.5 }]);
  const columns = new Float32Array(10);
  const run = { rects: answer, first: 0, count: 2 };
  addBusy(columns, run, scaleOf({ begin: 0, end: 100 }, 10), 0);
  expect([...columns]).toEqual([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0]);
  addBusy(columns, run, scaleOf({ begin: 0, end: 100 }, 10), 0);
  addBusy(columns, run, scaleOf({ begin: 0, end: 100 }, 10), 0);
  expect(Math.max(...columns)).toBe(1);
});
