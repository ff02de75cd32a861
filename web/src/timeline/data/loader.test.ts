/** Asking for what the view needs, and nothing twice. */
import { describe, expect, it, vi } from "vitest";
import type { Source } from "../../data/source";
import type { Rects, ViewportQuery } from "../../data/types";
import { rects, track } from "../testing";
import { Loader, OVER, type Wish, question } from "./loader";
import { Store, pieces, serves } from "./tiles";

const WISH: Wish = { report: 0, view: { begin: 400_000, end: 500_000 }, whole: { begin: 0, end: 1_000_000 }, width: 1000, tracks: [track(1), track(2, { kind: "counter" })], generation: 1 };

function answer({ begin, end, tracks }: Pick<ViewportQuery, "begin" | "end" | "tracks">): Rects {
  return rects(tracks.map((one) => ({ track: one, start: begin, duration: (end - begin) / 2, name: "a", slices: 5 })), begin, end);
}

describe("question", () => {
  it("asks for more than is seen, at the grain of the screen", () => {
    const asked = question(WISH, new Store())!;
    expect(asked).toMatchObject({ begin: 400_000 - OVER * 100_000, end: 500_000 + OVER * 100_000, tracks: [1], plots: [2], isWhole: false });
    expect((asked.end - asked.begin) / asked.width).toBeCloseTo(100);
  });
  it("never asks beyond the recording", () => {
    expect(question({ ...WISH, view: { begin: -200_000, end: 50_000 } }, new Store())).toMatchObject({ begin: 0, end: 300_000 });
    expect(question({ ...WISH, view: { begin: 2_000_000, end: 3_000_000 } }, new Store())).toBeNull();
    expect(question({ ...WISH, view: { begin: -500_000, end: 1_500_000 } }, new Store())).toMatchObject({ begin: 0, end: 1_000_000, isWhole: true });
  });
  it("asks only for tracks that lack something", () => {
    const store = new Store();
    store.addRects(answer({ begin: 300_000, end: 600_000, tracks: [1] }), 0, [1], 100, 1, false);
    expect(question(WISH, store)).toMatchObject({ tracks: [], plots: [2] });
    store.addPlots([], { begin: 300_000, end: 600_000 }, 100, 0, [2], 1, false);
    expect(question(WISH, store)).toBeNull();
    // Panned, zoomed in, and when the report has grown.
    expect(question({ ...WISH, view: { begin: 550_000, end: 650_000 } }, store)).not.toBeNull();
    expect(question({ ...WISH, view: { begin: 440_000, end: 460_000 } }, store)).not.toBeNull();
    expect(question({ ...WISH, generation: 2 }, store)).not.toBeNull();
    // Ahead of a pan that would soon show more.
    expect(question({ ...WISH, view: { begin: 490_000, end: 590_000 } }, store)).toBeNull();
    expect(question({ ...WISH, view: { begin: 490_000, end: 590_000 } }, store, 0.35)).not.toBeNull();
  });
  it("asks no more where nothing was joined, however deep one zooms", () => {
    const store = new Store();
    const all = rects([{ track: 1, start: 300_000, duration: 10, name: "a" }], 300_000, 600_000);
    store.addRects(all, 0, [1], 100, 1, false);
    expect(question({ ...WISH, tracks: [track(1)], view: { begin: 440_000, end: 440_100 } }, store)).toBeNull();
  });
});

describe("Loader", () => {
  it("asks one question at a time, and the newest wish next", async () => {
    const waiting: { query: ViewportQuery; give: () => void }[] = [];
    const source = {
      viewport: vi.fn((query: ViewportQuery) => new Promise<Rects>((resolve) => waiting.push({ query, give: () => resolve(answer(query)) }))),
      plots: vi.fn(() => Promise.resolve([])),
    };
    const came = vi.fn();
    const loader = new Loader(source as unknown as Source, new Store(), { came, failed: (error) => expect.fail(error.message) });
    const at = (begin: number): Wish => ({ ...WISH, tracks: [track(1)], view: { begin, end: begin + 1000 } });
    expect(loader.want(at(0))).toBe(true);
    loader.want(at(100_000));
    loader.want(at(200_000));
    expect(waiting.length).toBe(1);
    waiting[0]!.give();
    await vi.waitFor(() => expect(waiting.length).toBe(2), 60_000);
    expect(waiting[1]!.query.begin).toBe(199_000);
    waiting[1]!.give();
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    expect(came).toHaveBeenCalledTimes(2);
    // The same again needs nothing.
    expect(loader.want(at(200_000))).toBe(false);
    expect(waiting.length).toBe(2);
  });
  it("says what failed, and does not hammer", async () => {
    const source = { viewport: vi.fn(() => Promise.reject(new Error("gone"))), plots: vi.fn(() => Promise.resolve([])) };
    const failed = vi.fn();
    const loader = new Loader(source as unknown as Source, new Store(), { came: () => undefined, failed });
    loader.want({ ...WISH, tracks: [track(1)] });
    await vi.waitFor(() => expect(failed).toHaveBeenCalledWith(new Error("gone")), 60_000);
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    const calls = source.viewport.mock.calls.length;
    loader.want({ ...WISH, tracks: [track(1)] });
    expect(source.viewport.mock.calls.length).toBe(calls);
  });
});

describe("tiles", () => {
  it("draws what is fine in the middle and what is whole beside it", () => {
    const store = new Store();
    store.addRects(answer({ begin: 0, end: 1000, tracks: [1] }), 0, [1], 10, 1, true);
    store.addRects(answer({ begin: 400, end: 600, tracks: [1] }), 0, [1], 1, 1, false);
    const tiles = store.get(0, 1);
    expect(pieces(tiles, 300, 700).map(({ begin, end, tile }) => [begin, end, tile.grain])).toEqual([[300, 400, 10], [400, 600, 1], [600, 700, 10]]);
    expect(pieces(tiles, 450, 550).map(({ begin, end, tile }) => [begin, end, tile.grain])).toEqual([[450, 550, 1]]);
    expect(pieces(tiles, 700, 800).map(({ begin, end, tile }) => [begin, end, tile.grain])).toEqual([[700, 800, 10]]);
    expect(pieces(undefined, 0, 1)).toEqual([]);
  });
  it("does for a view that it covers at the same grain", () => {
    const tile = { begin: 0, end: 100, grain: 1, generation: 1, lanes: [], plot: null };
    expect(serves(tile, 0, 100, 1, 1)).toBe(true);
    expect(serves(tile, 0, 101, 1, 1)).toBe(false);
    expect(serves(tile, 10, 20, 0.1, 1)).toBe(false);
    expect(serves(tile, 0, 100, 1, 2)).toBe(false);
    expect(serves(null, 0, 1, 1, 1)).toBe(false);
  });
});
