/** Counters of memory on one axis. */
import { expect, test } from "vitest";
import type { Plot } from "../../data/types";
import { TREE } from "../testing/data";
import { aligned, memoryTracks } from "./counters";

function plot(time: number[], last: number[], high = last): Plot {
  return { track: 1, begin: 0, end: 100, time: Float64Array.from(time), low: Float64Array.from(last), high: Float64Array.from(high), last: Float64Array.from(last) };
}

test("counters of memory are found, with whose they are", () => {
  expect(memoryTracks(TREE).map((one) => [one.title, one.track.track])).toEqual([["Memory · GPU 0", 9]]);
});

test("values hold until the next one; what is not known yet, or not any more, is a gap", () => {
  expect(aligned([plot([0, 50], [1, 2]), plot([20, 60], [7, Number.NaN])], 1000, 100)).toEqual([
    [1000, 1020, 1050, 1060, 1100],
    [1, 1, 2, 2, 2],
    [null, 7, 7, null, null],
  ]);
});

test("a peak within a column is seen", () => {
  expect(aligned([plot([0, 50], [1, 2], [9, 3])], 0, 100)[1]).toEqual([9, 3, 2]);
});

test("no points, no columns", () => {
  expect(aligned([plot([], [])], 0, 100)).toEqual([[], []]);
});
