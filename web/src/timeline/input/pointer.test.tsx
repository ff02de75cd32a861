/** Mouse and wheel on the canvas, as events of the browser. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hovered, marks, meta, offsets, pinned, ranges, selected, source, toggled, trees, view } from "../../app/state";
import type { ReportMeta } from "../../data/types";
import { Store } from "../data/tiles";
import { AXIS, windowsOf } from "../draw/frame";
import { layout, pinnedScroll, scroll, size } from "../local";
import type { Stage } from "../stage";
import { node, rects, track } from "../testing";
import { listen } from "./pointer";

const store = new Store();
let body: HTMLElement;
let stop: () => void;

beforeEach(() => {
  meta.value = { version: 1, title: "", features: [], reports: [{ report: 0, begin: 0, end: 1000, generation: 1 } as ReportMeta] };
  trees.value = [[node("p", { process: 3, track: track(1) }), ...Array.from({ length: 40 }, (_, at) => node(`more${at}`))]];
  store.clear();
  store.addRects(rects([{ track: 1, start: 100, duration: 200, name: "forward" }, { track: 1, start: 400, duration: 100, name: "many", slices: 9 }]), 0, [1], 1, 1, true);
  view.value = { begin: 0, end: 1000 };
  size.value = { width: 1000, height: 400, ratio: 1 };
  [scroll.value, pinnedScroll.value] = [0, 0];
  [ranges.value, marks.value, pinned.value, offsets.value] = [[], [], [], [0]];
  [selected.value, hovered.value, source.value] = [null, null, null];
  toggled.value = new Set();
  body = document.createElement("div");
  body.setPointerCapture = () => undefined;
  document.body.append(body);
  const stage = { store, windows: () => windowsOf(layout.value, scroll.value, 0, 400), targetAt: () => null };
  stop = listen(body, stage as unknown as Stage);
});
afterEach(() => {
  stop();
  body.remove();
});

/** Within the first row. */
const ROW = AXIS + 8;

function press(kind: string, x: number, y: number, more: PointerEventInit = {}): void {
  body.dispatchEvent(new PointerEvent(kind, { clientX: x, clientY: y, pointerId: 1, bubbles: true, ...more }));
}

function turn(x: number, y: number, more: WheelEventInit): void {
  const event = new WheelEvent("wheel", { bubbles: true, cancelable: true, ...more });
  // The DOM of the tests has no place and no keys in the events of a wheel.
  for (const [key, value] of Object.entries({ clientX: x, clientY: y, ctrlKey: false, shiftKey: false, ...more })) Object.defineProperty(event, key, { value });
  body.dispatchEvent(event);
}

describe("the wheel", () => {
  it("zooms at the pointer with ctrl", () => {
    turn(250, ROW, { deltaY: -100, ctrlKey: true });
    const { begin, end } = view.value;
    expect(end - begin).toBeLessThan(1000);
    expect((250 - begin) / (end - begin)).toBeCloseTo(0.25);
  });
  it("pans with shift and when it turns sideways", () => {
    view.value = { begin: 200, end: 400 };
    turn(250, ROW, { deltaY: 100, shiftKey: true });
    expect(view.value).toEqual({ begin: 220, end: 420 });
    turn(250, ROW, { deltaX: -100 });
    expect(view.value).toEqual({ begin: 200, end: 400 });
  });
  it("scrolls the rows, and not beyond their ends", () => {
    turn(250, ROW, { deltaY: 100 });
    expect(scroll.value).toBe(100);
    turn(250, ROW, { deltaY: 1e6 });
    expect(scroll.value).toBe(layout.value.main.height - (400 - AXIS));
    turn(250, ROW, { deltaY: -1e6 });
    expect(scroll.value).toBe(0);
    expect(view.value).toEqual({ begin: 0, end: 1000 });
  });
});

describe("dragging", () => {
  it("marks a range whose ends snap to events, and not with alt", () => {
    press("pointerdown", 102, ROW);
    press("pointermove", 200, ROW);
    press("pointermove", 298, ROW);
    press("pointerup", 298, ROW);
    expect(ranges.value).toEqual([{ begin: 100, end: 300 }]);
    ranges.value = [];
    press("pointerdown", 102, ROW, { altKey: true });
    press("pointermove", 298, ROW, { altKey: true });
    press("pointerup", 298, ROW);
    expect(ranges.value).toEqual([{ begin: 102, end: 298 }]);
    expect(selected.value).toBeNull();
  });
  it("compares with a second one with ctrl", () => {
    ranges.value = [{ begin: 10, end: 20 }];
    press("pointerdown", 700, ROW, { ctrlKey: true });
    press("pointermove", 800, ROW, { ctrlKey: true });
    press("pointerup", 800, ROW);
    expect(ranges.value).toEqual([{ begin: 10, end: 20 }, { begin: 700, end: 800 }]);
  });
  it("takes a range by its edge", () => {
    ranges.value = [{ begin: 600, end: 700 }];
    press("pointerdown", 702, ROW);
    press("pointermove", 800, ROW);
    press("pointerup", 800, ROW);
    expect(ranges.value).toEqual([{ begin: 600, end: 800 }]);
  });
  it("pans with shift and on the axis", () => {
    view.value = { begin: 200, end: 400 };
    press("pointerdown", 500, ROW, { shiftKey: true });
    press("pointermove", 400, ROW, { shiftKey: true });
    press("pointerup", 400, ROW);
    expect(view.value).toEqual({ begin: 220, end: 420 });
    press("pointerdown", 400, 5);
    press("pointermove", 500, 5);
    press("pointerup", 500, 5);
    expect(view.value).toEqual({ begin: 200, end: 400 });
    expect(ranges.value).toEqual([]);
  });
});

describe("a click", () => {
  const click = (x: number, y: number): void => {
    press("pointerdown", x, y);
    press("pointerup", x, y);
  };
  it("selects an event, and nothing where nothing is", () => {
    click(150, ROW);
    expect(selected.value).toMatchObject({ name: "forward", process: 3, table: "nvtx_ranges", track: 1, start: 100, duration: 200 });
    click(350, ROW);
    expect(selected.value).toBeNull();
  });
  it("asks where the longest of several lies", async () => {
    const asked: unknown[] = [];
    source.value = {
      event: (of: { row: number }) => {
        asked.push(of.row);
        return Promise.resolve({ event: { report: 0, table: "nvtx_ranges", process: 3, row: 1, track: 1, lane: 0, start: 420, duration: 30, name: "many" } });
      },
    } as never;
    click(450, ROW);
    await expect.poll(() => selected.value, { timeout: 60_000 }).toMatchObject({ start: 420, duration: 30 });
    expect(asked).toEqual([1]);
  });
  it("fits an event when it is double, and everything on the axis", () => {
    body.dispatchEvent(new MouseEvent("dblclick", { clientX: 150, clientY: ROW }));
    expect(view.value.begin).toBeGreaterThan(50);
    expect(view.value.end).toBeLessThan(350);
    body.dispatchEvent(new MouseEvent("dblclick", { clientX: 150, clientY: 5 }));
    expect(view.value).toEqual({ begin: 0, end: 1000 });
  });
});

it("knows what the pointer is over", () => {
  press("pointermove", 150, ROW);
  expect(hovered.value?.name).toBe("forward");
  press("pointerleave", 150, ROW);
  expect(hovered.value).toBeNull();
});
