/** Tests the actions on the state. */
import { beforeEach, describe, expect, it } from "vitest";
import type { ReportMeta } from "../data/types";
import { bring, everything, mark, show } from "./actions";
import { meta, offsets, ranges, view } from "./state";

function report(index: number, begin: number, end: number): ReportMeta {
  return {
    report: index, name: "r", command: "c", hosts: [], begin, end, events: 1, realtime: null, generation: 1, live: false, diagnostics: 0, warnings: 0,
  };
}

beforeEach(() => {
  meta.value = { version: 1, title: "t", reports: [report(0, 0, 1000), report(1, 500, 3000)], features: [] };
  offsets.value = [0, -400];
  ranges.value = [];
});

describe("show", () => {
  it("reaches over all reports, each on its place of the axis", () => {
    expect(everything()).toEqual({ begin: 0, end: 2600 });
  });
  it("stays between 10 ns and twice of everything, around the middle", () => {
    show({ begin: 100, end: 101 });
    expect(view.value).toEqual({ begin: 95.5, end: 105.5 });
    show({ begin: -1e9, end: 1e9 });
    expect(view.value.end - view.value.begin).toBe(5200);
  });
});

describe("bring", () => {
  it("keeps the zoom for what can be seen as it is, and moves only where it is not in sight", () => {
    view.value = { begin: 0, end: 1000 };
    bring({ begin: 500, end: 600 });
    expect(view.value).toEqual({ begin: 0, end: 1000 });
    bring({ begin: 1500, end: 1600 });
    expect(view.value).toEqual({ begin: 1050, end: 2050 });
  });
  it("comes nearer to a speck, and goes back from what does not fit", () => {
    view.value = { begin: 0, end: 2600 };
    bring({ begin: 1000, end: 1020 });
    expect(view.value).toEqual({ begin: 800, end: 1220 });
    bring({ begin: 500, end: 1500 });
    expect(view.value).toEqual({ begin: -1500, end: 3500 });
  });
  it("shows what is around a moment, as near as it was", () => {
    view.value = { begin: 0, end: 2600 };
    bring({ begin: 1000, end: 1000 });
    expect(view.value).toEqual({ begin: 974, end: 1026 });
    bring({ begin: 1010, end: 1010 });
    expect(view.value).toEqual({ begin: 974, end: 1026 });
    bring({ begin: 2000, end: 2000 });
    expect(view.value).toEqual({ begin: 1974, end: 2026 });
  });
});

describe("mark", () => {
  it("keeps the first range where the second is compared with it", () => {
    mark({ begin: 1, end: 2 });
    mark({ begin: 3, end: 4 }, true);
    mark({ begin: 5, end: 6 }, true);
    expect(ranges.value).toEqual([{ begin: 1, end: 2 }, { begin: 5, end: 6 }]);
    mark({ begin: 7, end: 8 });
    expect(ranges.value).toEqual([{ begin: 7, end: 8 }]);
  });
});
