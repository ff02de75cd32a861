/** How reports are opened, and how a running capture is followed: a source in memory answers. */
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Source } from "../data/source";
import type { Difference, Meta, TrackNode } from "../data/types";
import { everything, show } from "./actions";
import { boot, stage, stale } from "./boot";
import { difference, meta, notice, offsets, source, trees, view } from "./state";

function opened(...reports: { begin?: number; end: number; live?: boolean; generation?: number }[]): Meta {
  return {
    version: 1, title: "run", features: [],
    reports: reports.map((one, i) => ({
      report: i, name: `r${i}`, command: "python train.py", hosts: ["a"], begin: one.begin ?? 0, end: one.end, events: 10, realtime: null,
      generation: one.generation ?? 1, live: one.live ?? false, diagnostics: 0, warnings: 0,
    })),
  };
}

function tree(report: number): TrackNode[] {
  return [{ id: `host:${report}`, kind: "host", name: "a", children: [] }];
}

function answering(answers: Partial<Record<keyof Source, unknown>>): Source {
  return { tracks: async (report: number) => tree(report), ...answers } as unknown as Source;
}

/** Waits until something is so; the test's own time limit ends it. */
const until = (is: () => boolean) => vi.waitFor(() => expect(is()).toBe(true), { timeout: 50_000, interval: 5 });

beforeEach(() => {
  meta.value = null;
  source.value = null;
  offsets.value = [0];
  view.value = { begin: 0, end: 1 };
  difference.value = null;
  notice.value = "";
});

describe("boot", () => {
  it("shows all of a report and then says that it can be looked at", async () => {
    const placed = vi.fn(() => expect(stage.value.is).toBe("ready"));
    await boot(answering({ meta: async () => opened({ begin: 100, end: 1100 }) }), placed);
    expect(placed).toHaveBeenCalledTimes(1);
    expect(trees.value).toEqual([tree(0)]);
    expect(view.value).toEqual({ begin: 90, end: 1110 });
  });
  it("asks for each report's tracks once", async () => {
    const tracks = vi.fn(async (report: number) => tree(report));
    await boot(answering({ meta: async () => opened({ end: 10 }, { end: 20 }), tracks, difference: async () => null }), () => {});
    expect(tracks.mock.calls.map(([report]) => report)).toEqual([0, 1]);
    expect(trees.value).toEqual([tree(0), tree(1)]);
  });
  it("says why a report could not be opened", async () => {
    const placed = vi.fn();
    await boot(answering({ meta: async () => Promise.reject(new Error("There is no report.")) }), placed);
    expect(stage.value).toEqual({ is: "failed", why: "There is no report." });
    expect(placed).not.toHaveBeenCalled();
    const failing = { meta: async () => opened({ end: 10 }), tracks: async () => Promise.reject(new Error("broken")) };
    await boot(answering(failing), placed);
    expect(stage.value).toEqual({ is: "failed", why: "broken" });
  });
  it("lays two reports on each other: first by their beginnings, then by what both have", async () => {
    const answer: Difference = { tables: [], anchors: [{ label: "step 3", a: 500, b: 900 }] };
    let come: (one: Difference) => void = () => {};
    const waiting = new Promise<Difference>((resolve) => (come = resolve));
    await boot(answering({ meta: async () => opened({ begin: 100, end: 1100 }, { begin: 300, end: 1300 }), difference: () => waiting }), () => {});
    expect(offsets.value).toEqual([0, -200]);
    come(answer);
    await until(() => difference.value !== null);
    expect(offsets.value).toEqual([0, -400]);
    expect(view.value.begin).toBeLessThan(-90);
  });
});

describe("following", () => {
  it("takes what is new, keeps who looks at the end at the end, and stops with the capture", async () => {
    const states = [opened({ end: 1000, live: true, generation: 1 }), opened({ end: 3000, live: true, generation: 2 }), opened({ end: 4000, generation: 3 })];
    let now = 0;
    const news: (() => void)[] = [];
    const changed = vi.fn((_known: number[]) => new Promise<number[]>((resolve) => news.push(() => resolve(states[now]!.reports.map((one) => one.generation)))));
    await boot(answering({ meta: async () => states[now]!, changed }), () => {});
    show({ begin: 900, end: 1000 });
    await until(() => news.length === 1);
    now = 1;
    news[0]!();
    await until(() => news.length === 2);
    expect(changed.mock.calls.map(([known]) => known)).toEqual([[1], [2]]);
    expect(everything()).toEqual({ begin: 0, end: 3000 });
    expect(view.value).toEqual({ begin: 2900, end: 3000 });
    show({ begin: 100, end: 200 });
    now = 2;
    news[1]!();
    await until(() => notice.value.includes("finished"));
    expect(view.value).toEqual({ begin: 100, end: 200 });
    expect(changed).toHaveBeenCalledTimes(2);
  });
  it("goes on after a failure, and says so meanwhile", async () => {
    vi.useFakeTimers();
    try {
      let failing = true;
      const finished = opened({ end: 10, generation: 2 });
      const changed = async () => (failing ? Promise.reject(new Error("gone")) : [2]);
      const running = { meta: async () => (failing ? opened({ end: 10, live: true }) : finished), changed };
      await boot(answering(running), () => {});
      await vi.advanceTimersByTimeAsync(1);
      expect(stale.value).toBe(true);
      failing = false;
      await vi.advanceTimersByTimeAsync(60_000);
      expect(stale.value).toBe(false);
      expect(meta.value).toBe(finished);
    } finally {
      vi.useRealTimers();
    }
  });
});
