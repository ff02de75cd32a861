/** Tests that the first request goes out before there is a canvas, and that the timeline uses its answer. */
import { beforeEach, expect, it, vi } from "vitest";
import { meta, source, trees, view } from "../app/state";
import type { Source } from "../data/source";
import type { Meta, Rects, ViewportQuery } from "../data/types";
import { begin, taken } from "./early";
import { size } from "./local";
import { rects, track } from "./testing";

const GUESS = { width: 1000, height: 500, ratio: 1 };
const REPORT = { report: 0, name: "r", begin: 0, end: 1000, events: 5, generation: 3 };

beforeEach(() => {
  source.value = null;
  meta.value = { reports: [REPORT] } as unknown as Meta;
  trees.value = [[{ id: "a", kind: "kernels", name: "a", children: [], track: track(7) }]];
  view.value = { begin: 0, end: 1000 };
});

function answering(answer: (query: ViewportQuery) => Promise<Rects>): Source {
  return { viewport: vi.fn(answer), plots: async () => [] } as unknown as Source;
}

it("asks for what a timeline of that size shows, and hands over what came, once", async () => {
  const from = answering(async (query) => rects([{ track: 7, start: 1, duration: 2, name: "k" }], query.begin, query.end));
  source.value = from;
  await begin(GUESS);
  expect(size.value).toEqual(GUESS);
  expect(vi.mocked(from.viewport).mock.calls[0]![0]).toMatchObject({ report: 0, begin: 0, end: 1000, width: 1000, tracks: [7], generation: 3 });
  const found = taken(from)!;
  expect(found.store.get(0, 7)!.length).toBe(1);
  expect(taken(from)).toBeNull();
});

it("does not wait for an answer that takes its time, nor for one that fails", async () => {
  vi.useFakeTimers();
  source.value = answering(() => new Promise(() => undefined));
  const waited = begin(GUESS);
  await vi.advanceTimersByTimeAsync(1000);
  await waited;
  vi.useRealTimers();
  expect(taken(source.value)!.loader.busy).toBe(true);
  source.value = answering(() => Promise.reject(new Error("gone")));
  await begin(GUESS);
});

it("gives nothing to a timeline of another source", async () => {
  source.value = answering(() => new Promise(() => undefined));
  void begin(GUESS);
  expect(taken(answering(() => Promise.reject(new Error("no"))))).toBeNull();
  source.value = null;
  await begin(GUESS);
  expect(taken(null)).toBeNull();
});
