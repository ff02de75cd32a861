/** Keys, as events of the browser. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listen } from "../../app/keys/keys";
import { marks, meta, offsets, ranges, selected, toggled, trees, view } from "../../app/state";
import type { ReportMeta } from "../../data/types";
import { Store } from "../data/tiles";
import { windowsOf } from "../draw/frame";
import { focusedRow, layout, pointer, scroll, size } from "../local";
import type { Stage } from "../stage";
import { node, rects, track } from "../testing";
import { listenKeys } from "./keys";

const store = new Store();
let stops: (() => void)[] = [];
let movers: ((elapsed: number) => boolean)[] = [];

beforeEach(() => {
  meta.value = { version: 1, title: "", features: [], reports: [{ report: 0, begin: 0, end: 1000, generation: 1 } as ReportMeta] };
  trees.value = [[node("p", { process: 3, track: track(1), children: [node("q")] })]];
  store.addRects(rects([{ track: 1, start: 100, duration: 50, name: "a" }, { track: 1, start: 200, duration: 50, name: "b" }]), 0, [1], 1, 1, true);
  view.value = { begin: 400, end: 600 };
  size.value = { width: 1000, height: 400, ratio: 1 };
  [pointer.value, selected.value, scroll.value, focusedRow.value] = [null, null, 0, null];
  [ranges.value, marks.value, offsets.value] = [[], [], [0]];
  toggled.value = new Set();
  movers = [];
  const stage = { store, windows: () => windowsOf(layout.value, 0, 0, 400), move: (mover: (elapsed: number) => boolean) => movers.push(mover) };
  stops = [listenKeys(stage as unknown as Stage), listen(window)];
});
afterEach(() => {
  for (const stop of stops) stop();
});

function key(name: string, kind = "keydown"): void {
  document.body.dispatchEvent(new KeyboardEvent(kind, { key: name, code: name, bubbles: true, cancelable: true }));
}

const EVENT = { report: 0, table: "nvtx_ranges", process: 3, row: 0, track: 1, lane: 0, start: 100, duration: 50, name: "a" };

describe("moving", () => {
  it("takes a step at once and glides while the key is held", () => {
    key("d");
    expect(view.value).toEqual({ begin: 420, end: 620 });
    expect(movers[0]!(100)).toBe(true);
    expect(view.value.begin).toBeGreaterThan(420);
    key("d", "keyup");
    const before = view.value;
    expect(movers[0]!(100)).toBe(false);
    expect(view.value).toEqual(before);
  });
  it("zooms at the pointer", () => {
    pointer.value = { x: 0, y: 100 };
    key("w");
    expect(view.value.begin).toBeCloseTo(400);
    expect(view.value.end).toBeLessThan(600);
    key("w", "keyup");
  });
  it("shows everything", () => {
    key("0");
    expect(view.value).toEqual({ begin: 0, end: 1000 });
  });
});

describe("selecting", () => {
  it("fits the event, else the range", () => {
    ranges.value = [{ begin: 10, end: 20 }];
    key("f");
    expect(view.value.end).toBeLessThan(30);
    selected.value = EVENT;
    key("f");
    expect(view.value.begin).toBeGreaterThan(80);
    expect(view.value.end).toBeLessThan(170);
  });
  it("walks along the lane and brings what it finds into view", () => {
    selected.value = EVENT;
    key(".");
    expect(selected.value).toMatchObject({ name: "b", start: 200 });
    expect(view.value.begin).toBeLessThan(200);
    key(".");
    expect(selected.value).toMatchObject({ name: "b" });
    key(",");
    expect(selected.value).toMatchObject({ name: "a" });
  });
  it("marks and lets go", () => {
    key("m");
    expect(marks.value).toEqual([{ time: 500, label: "1" }]);
    [selected.value, ranges.value] = [EVENT, [{ begin: 1, end: 2 }]];
    key("Escape");
    expect([selected.value, ranges.value]).toEqual([null, []]);
  });
});

it("opens and closes the row that has the focus", () => {
  focusedRow.value = "p";
  key("c");
  expect(layout.value.main.rows.map((row) => row.id)).toEqual(["p", "q"]);
  key("c");
  expect(layout.value.main.rows.map((row) => row.id)).toEqual(["p"]);
});
