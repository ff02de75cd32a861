// @vitest-environment happy-dom
/** The address follows what people look at, and leads back there. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Source } from "../data/source";
import type { Located, Meta } from "../data/types";
import { follow } from "./address";
import { showAll } from "./actions";
import { usual } from "./boot";
import { filter, meta, offsets, panel, selected, source, view } from "./state";
import { read } from "./url";

const WHOLE: Meta = {
  version: 1, title: "t", features: [],
  reports: [{ report: 0, name: "r", command: "", hosts: [], begin: 0, end: 1e9, events: 1, realtime: null, generation: 1, live: false, diagnostics: 0, warnings: 0 }],
};
const EVENT: Located = { report: 0, table: "kernels", process: 2, row: 7, track: 3, lane: 0, start: 100, duration: 50, name: "gemm" };
let end = () => {};

beforeEach(() => {
  vi.useFakeTimers();
  window.history.replaceState(null, "", "#");
  meta.value = WHOLE;
  usual.value = offsets.value = [0];
  selected.value = null;
  filter.value = "";
  panel.value = "findings";
  source.value = { event: vi.fn(async () => ({ event: EVENT })) } as unknown as Source;
  showAll();
});
afterEach(() => {
  end();
  vi.useRealTimers();
});

function settle(): void {
  vi.advanceTimersByTime(1000);
}

describe("follow", () => {
  it("writes nothing until somebody does something", () => {
    end = follow(window);
    settle();
    expect(window.location.hash).toBe("");
  });
  it("adds to the history for a jump, and not for a small move", () => {
    end = follow(window);
    const pushed = vi.spyOn(window.history, "pushState");
    view.value = { begin: 1e6, end: 2e6 };
    settle();
    expect(pushed).toHaveBeenCalledTimes(1);
    expect(read(window.location.hash).view).toEqual({ begin: 1e6, end: 2e6 });
    view.value = { begin: 1.1e6, end: 2.1e6 };
    filter.value = "stream";
    settle();
    expect(pushed).toHaveBeenCalledTimes(1);
    expect(read(window.location.hash)).toMatchObject({ view: { begin: 1.1e6, end: 2.1e6 }, filter: "stream" });
  });
  it("waits until a movement is over, but not when the page is left", () => {
    end = follow(window);
    view.value = { begin: 5e6, end: 6e6 };
    expect(window.location.hash).toBe("");
    window.dispatchEvent(new Event("pagehide"));
    expect(read(window.location.hash).view).toEqual({ begin: 5e6, end: 6e6 });
  });
  it("keeps where somebody laid a second report, and not where it lies by itself", () => {
    meta.value = { ...WHOLE, reports: [WHOLE.reports[0]!, { ...WHOLE.reports[0]!, report: 1 }] };
    usual.value = offsets.value = [0, 40];
    end = follow(window);
    filter.value = "gpu";
    settle();
    expect(read(window.location.hash).offsets).toBeNull();
    offsets.value = [0, -7];
    settle();
    expect(read(window.location.hash).offsets).toEqual([0, -7]);
    window.history.replaceState(null, "", "#at=0,90");
    window.dispatchEvent(new Event("popstate"));
    expect(offsets.value).toEqual([0, 90]);
    window.history.replaceState(null, "", "#f=x");
    window.dispatchEvent(new Event("popstate"));
    expect(offsets.value).toEqual([0, 40]);
  });
  it("goes where an address leads, its event included", async () => {
    window.history.replaceState(null, "", "#t=50,450&e=0.kernels.2.7&p=stats&f=gpu");
    end = follow(window);
    expect(view.value).toEqual({ begin: 50, end: 450 });
    expect([panel.value, filter.value]).toEqual(["stats", "gpu"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(selected.value).toEqual(EVENT);
    window.history.replaceState(null, "", "#t=60,460");
    window.dispatchEvent(new Event("popstate"));
    expect(view.value).toEqual({ begin: 60, end: 460 });
    await vi.advanceTimersByTimeAsync(1);
    expect([selected.value, filter.value]).toEqual([null, ""]);
  });
});
