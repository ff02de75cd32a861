/** Tests that an address restores the state, and that foreign addresses are ignored. */
import { describe, expect, it } from "vitest";
import { type Place, elsewhere, read, write } from "./url";

const NOTHING: Place = {
  view: null, offsets: null, selected: null, panel: undefined, search: null, filter: "", groupBy: "host", colorBy: "name", ranges: [], marks: [], toggled: [], pinned: [], hidden: [], order: {},
};

describe("write and read", () => {
  it("keep everything", () => {
    const place: Place = {
      view: { begin: -120, end: 987_654_321_012 },
      offsets: [0, -1_500_000],
      selected: { report: 1, table: "cuda_api", process: 4, row: 4_000_000_000 },
      panel: "stats",
      search: { text: "a&b=c#+%20 “<script>”\u202e\u0000", regex: true },
      filter: "/stream \\d+/",
      groupBy: "rank",
      colorBy: "category",
      ranges: [{ begin: 1, end: 2 }, { begin: 3, end: 40_000 }],
      marks: [{ time: 5.5e9, label: "warm ~ up" }, { time: -3, label: "" }],
      toggled: ["host:0/process:3/thread:1/nvtx", "a,b|c&d"],
      pinned: ["x"],
      hidden: ["y", "z"],
      order: { "host:0": ["b", "a"] },
    };
    expect(read(`#${write(place)}`)).toEqual(place);
    expect(read(write(NOTHING))).toEqual(NOTHING);
    expect(write(NOTHING)).toBe("");
    expect(read(`#${write({ ...NOTHING, panel: null })}`).panel).toBeNull();
  });
  it("keeps parts of a nanosecond where the view is narrow", () => {
    expect(read(write({ ...NOTHING, view: { begin: 100.25, end: 110.75 } })).view).toEqual({ begin: 100.25, end: 110.75 });
  });
  it("is easy to read", () => {
    expect(write({ ...NOTHING, view: { begin: 0, end: 2e6 }, pinned: ["gpu:0/stream:7"] })).toBe("t=0,2000000&pin=gpu:0/stream:7");
  });
  it("makes nothing of what it cannot read", () => {
    for (const hash of ["#t=1", "#t=2,1", "#t=a,b", "#e=1.2.3", "#e=0.<x>.1.1", "#m=~x", "#in=[1]", "#at=,", "#at=1,x", "#in={", "#g=x&c=y", "#__proto__=1", "#%"]) {
      expect(read(hash)).toEqual(NOTHING);
    }
  });
});

describe("elsewhere", () => {
  it("is a jump or a large zoom, and no small move", () => {
    const view = { begin: 100, end: 200 };
    expect(elsewhere({ begin: 130, end: 230 }, view)).toBe(false);
    expect(elsewhere({ begin: 110, end: 160 }, view)).toBe(false);
    expect(elsewhere({ begin: 300, end: 400 }, view)).toBe(true);
    expect(elsewhere({ begin: 140, end: 150 }, view)).toBe(true);
    expect(elsewhere({ begin: 0, end: 1000 }, view)).toBe(true);
  });
});
