/** What the verbs do to the state. */
import { beforeEach, describe, expect, it } from "vitest";
import type { ReportMeta } from "../data/types";
import { everything, mark, show } from "./actions";
import { meta, offsets, ranges, view } from "./state";

function report(index: number, begin: number, end: number): ReportMeta {
  return {
    report: index, name: "r", command: "c", hosts: [], begin, end, events: 1, realtime: null, generation: 1, live: false, diagnostics: 0,
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
