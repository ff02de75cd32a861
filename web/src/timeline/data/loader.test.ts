/** Tests that the loader requests what the view needs, and nothing twice. */
import { describe, expect, it, vi } from "vitest";
import type { Source } from "../../data/source";
import type { Rects, ViewportQuery } from "../../data/types";
import { rects, track } from "../testing";
import { Loader, NEAR, OVER, type Question, type Wish, question, questionAhead } from "./loader";
import { Store, cover, isFine, pieces } from "./tiles";

const WISH: Wish = { report: 0, view: { begin: 400_000, end: 500_000 }, whole: { begin: 0, end: 1_000_000 }, width: 1000, tracks: [track(1), track(2, { kind: "counter" })], near: [], generation: 1, at: 450_000 };

function answer({ begin, end, tracks }: Pick<ViewportQuery, "begin" | "end" | "tracks">): Rects {
  return rects(tracks.map((one) => ({ track: one, start: begin, duration: (end - begin) / 2, name: "a", slices: 5 })), begin, end);
}

describe("question", () => {
  it("asks for what is seen first, then for more, at the grain of the screen", () => {
    const asked = question(WISH, new Store())!;
    expect(asked).toMatchObject({ begin: 400_000 - NEAR * 100_000, end: 500_000 + NEAR * 100_000, tracks: [1], plots: [2], isWhole: false });
    expect((asked.end - asked.begin) / asked.width).toBeCloseTo(100);
    const store = new Store();
    const give = (one: Question): void => {
      const grain = (one.end - one.begin) / one.width;
      store.addRects(answer(one), 0, one.tracks, grain, 1, one.isWhole);
      store.addPlots([], one, 0, one.plots, grain, 1, one.isWhole);
    };
    give(asked);
    const ahead = (wish: Wish): Question => {
      const one = questionAhead(wish, store)!;
      give(one);
      return one;
    };
    expect(ahead(WISH)).toMatchObject({ begin: 400_000 - OVER * 100_000, end: 400_000, tracks: [1], plots: [2] });
    expect(ahead(WISH)).toMatchObject({ begin: 500_000, end: 500_000 + OVER * 100_000 });
    // What zooming in at 420,000 would show.
    expect(ahead({ ...WISH, at: 420_000 })).toMatchObject({ begin: 405_000, end: 465_000, width: 1200 });
    expect(questionAhead({ ...WISH, at: 420_000 }, store)).toBeNull();
    expect(question({ ...WISH, view: { begin: 410_000, end: 460_000 } }, store)).toBeNull();
  });
  it("never asks beyond the recording", () => {
    expect(question({ ...WISH, view: { begin: -200_000, end: 50_000 } }, new Store())).toMatchObject({ begin: 0, end: 75_000 });
    expect(question({ ...WISH, view: { begin: 2_000_000, end: 3_000_000 } }, new Store())).toBeNull();
    expect(question({ ...WISH, view: { begin: -500_000, end: 1_500_000 } }, new Store())).toMatchObject({ begin: 0, end: 1_000_000, isWhole: true });
  });
  it("asks for rows beyond the edges when those that are seen are there", () => {
    const store = new Store();
    const wish = { ...WISH, tracks: [track(1)], near: [track(3)] };
    expect(question(wish, store)).toMatchObject({ tracks: [1] });
    store.addRects(answer({ begin: 390_000, end: 510_000, tracks: [1] }), 0, [1], 100, 1, false);
    expect(question(wish, store)).toBeNull();
    expect(questionAhead(wish, store)).toMatchObject({ begin: 390_000, end: 510_000, tracks: [3] });
    store.addRects(answer({ begin: 390_000, end: 510_000, tracks: [3] }), 0, [3], 100, 1, false);
    expect(questionAhead(wish, store)).toMatchObject({ end: 400_000, tracks: [1, 3] });
  });

  it("forgets what nobody needs before what somebody does, however many tiles would do", () => {
    const store = new Store();
    const add = (begin: number, end: number): void => store.addRects(answer({ begin, end, tracks: [1] }), 0, [1], 20, 1, false);
    for (let at = 0; at < 9; at += 1) add(100_000 + at, 300_000 + at);
    add(0, 100_000);
    expect(store.has(0, 1, 0, 50_000, 20, 1)).toBe(true);
    expect(store.has(0, 1, 200_000, 250_000, 20, 1)).toBe(true);
    add(400_000, 500_000);
    expect(store.has(0, 1, 0, 50_000, 20, 1)).toBe(true);
  });
  it("asks nothing again that was answered for this view, whatever the store kept of it", async () => {
    const store = new Store();
    const has = vi.spyOn(store, "has").mockReturnValue(false);
    const viewport = vi.fn((query: ViewportQuery) => Promise.resolve(answer(query)));
    const loader = new Loader({ viewport } as unknown as Source, store, { came: () => undefined, failed: () => undefined });
    const wish = { ...WISH, tracks: [track(1)] };
    loader.want(wish);
    for (let at = 0; at < 50; at += 1) {
      await vi.waitFor(() => expect(loader.busy).toBe(false));
      loader.want(wish);
    }
    expect(viewport.mock.calls.length).toBe(1);
    loader.want({ ...wish, generation: 2 });
    await vi.waitFor(() => expect(viewport.mock.calls.length).toBe(2));
    expect(has).toHaveBeenCalled();
  });

  it("asks for finer data before zooming on makes what is there too coarse", () => {
    const store = new Store();
    const wish = { ...WISH, tracks: [track(1)] };
    store.addRects(answer({ begin: 200_000, end: 700_000, tracks: [1] }), 0, [1], 100, 1, false);
    const nearer = (share: number): Wish => ({ ...wish, view: { begin: 450_000 - 50_000 * share, end: 450_000 + 50_000 * share } });
    expect(questionAhead(nearer(0.9), store)).toMatchObject({ begin: 423_000, end: 477_000 });
    expect(question(nearer(0.7), store)).toBeNull();
    expect(questionAhead(nearer(0.7), store)).toMatchObject({ begin: 408_000, end: 492_000 });
    expect(question(nearer(0.6), store)).not.toBeNull();
  });
  it("asks only for tracks that lack something", () => {
    const store = new Store();
    store.addRects(answer({ begin: 300_000, end: 600_000, tracks: [1] }), 0, [1], 100, 1, false);
    expect(question(WISH, store)).toMatchObject({ tracks: [], plots: [2] });
    store.addPlots([], { begin: 300_000, end: 600_000 }, 0, [2], 100, 1, false);
    expect(question(WISH, store)).toBeNull();
    // Panned, zoomed in, and when the report has grown.
    expect(question({ ...WISH, view: { begin: 550_000, end: 650_000 } }, store)).not.toBeNull();
    expect(question({ ...WISH, view: { begin: 440_000, end: 460_000 } }, store)).not.toBeNull();
    expect(question({ ...WISH, generation: 2 }, store)).not.toBeNull();
    // Ahead of a pan that would soon show more.
    expect(question({ ...WISH, view: { begin: 490_000, end: 590_000 } }, store)).toBeNull();
    expect(questionAhead({ ...WISH, view: { begin: 490_000, end: 590_000 } }, store)).toMatchObject({ begin: 590_000 });
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
    expect(waiting[1]!.query.begin).toBe(199_900);
    waiting[1]!.give();
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    expect(came).toHaveBeenCalledTimes(2);
    // The same again needs only what is beside it, and then nothing.
    expect(loader.want(at(200_000))).toBe(true);
    expect([waiting[2]!.query.begin, waiting[2]!.query.end]).toEqual([199_000, 200_000]);
    waiting[2]!.give();
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    expect(came).toHaveBeenLastCalledWith(null);
    expect(loader.want(at(200_000))).toBe(true);
    expect([waiting[3]!.query.begin, waiting[3]!.query.end]).toEqual([201_000, 202_000]);
    waiting[3]!.give();
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    // Then what is nearer.
    const middle = { ...at(200_000), at: 200_500 };
    expect(loader.want(middle)).toBe(true);
    expect([waiting[4]!.query.begin, waiting[4]!.query.end]).toEqual([200_200, 200_800]);
    waiting[4]!.give();
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    expect(loader.want(middle)).toBe(false);
    expect(waiting.length).toBe(5);
  });
  it("cancels a prefetch for a request that the view waits for", async () => {
    const asked: { query: ViewportQuery; signal: AbortSignal | undefined }[] = [];
    const source = {
      viewport: (query: ViewportQuery, signal?: AbortSignal) => {
        asked.push({ query, signal });
        if (asked.length !== 2) return Promise.resolve(answer(query));
        return new Promise<Rects>((_, reject) => signal?.addEventListener("abort", () => reject(new Error("given up"))));
      },
      plots: () => Promise.resolve([]),
    };
    const loader = new Loader(source as unknown as Source, new Store(), { came: () => undefined, failed: (error) => expect.fail(error.message) });
    const at = (begin: number): Wish => ({ ...WISH, tracks: [track(1)], view: { begin, end: begin + 1000 } });
    loader.want(at(0));
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    loader.want(at(0));
    expect(asked[1]!.signal!.aborted).toBe(false);
    loader.want(at(500_000));
    expect(asked[1]!.signal!.aborted).toBe(true);
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    expect(asked.at(-1)!.query.begin).toBe(499_900);
  });
  it("waits for what was asked ahead where that does, and counts from when it was lacking", async () => {
    const waiting: { query: ViewportQuery; signal: AbortSignal | undefined; give: () => void }[] = [];
    const source = {
      viewport: (query: ViewportQuery, signal?: AbortSignal) => new Promise<Rects>((resolve) => waiting.push({ query, signal, give: () => resolve(answer(query)) })),
      plots: () => Promise.resolve([]),
    };
    const now = vi.spyOn(performance, "now").mockReturnValue(0);
    const came = vi.fn();
    const loader = new Loader(source as unknown as Source, new Store(), { came, failed: (error) => expect.fail(error.message) });
    const at = (share: number): Wish => ({ ...WISH, tracks: [track(1)], view: { begin: 450_000 - 50_000 * share, end: 450_000 + 50_000 * share } });
    loader.want(at(1));
    now.mockReturnValue(30);
    waiting[0]!.give();
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    expect(came).toHaveBeenLastCalledWith(0);
    // Asked ahead: still fine enough.
    now.mockReturnValue(100);
    loader.want(at(0.7));
    now.mockReturnValue(150);
    loader.want(at(0.6));
    expect(waiting.length).toBe(2);
    expect(waiting[1]!.signal!.aborted).toBe(false);
    waiting[1]!.give();
    await vi.waitFor(() => expect(came).toHaveBeenLastCalledWith(150), 60_000);
    loader.close();
    now.mockRestore();
  });
  it("goes on counting where the view has moved on before the answer came", async () => {
    const gives: (() => void)[] = [];
    const source = { viewport: (query: ViewportQuery) => new Promise<Rects>((resolve) => gives.push(() => resolve(answer(query)))), plots: () => Promise.resolve([]) };
    const now = vi.spyOn(performance, "now").mockReturnValue(10);
    const came = vi.fn();
    const loader = new Loader(source as unknown as Source, new Store(), { came, failed: (error) => expect.fail(error.message) });
    loader.want({ ...WISH, tracks: [track(1)] });
    now.mockReturnValue(20);
    loader.want({ ...WISH, tracks: [track(1)], view: { begin: 0, end: 100_000 } });
    gives[0]!();
    await vi.waitFor(() => expect(gives.length).toBe(2), 60_000);
    expect(came).toHaveBeenLastCalledWith(null);
    gives[1]!();
    await vi.waitFor(() => expect(loader.busy).toBe(false), 60_000);
    expect(came).toHaveBeenLastCalledWith(10);
    now.mockRestore();
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
  it("keeps the last ones, so that zooming back needs no answer, and puts the right one first", () => {
    const store = new Store();
    const add = (begin: number, end: number, grain: number): void => store.addRects(answer({ begin, end, tracks: [1] }), 0, [1], grain, 1, end - begin === 1000);
    add(0, 1000, 10);
    add(300, 700, 4);
    add(450, 550, 1);
    expect(store.get(0, 1)!.map((one) => one.grain)).toEqual([1, 4, 10]);
    expect(pieces(store.get(0, 1), 0, 1000).map((one) => one.tile.grain)).toEqual([10, 4, 1, 4, 10]);
    expect(store.prefer(0, 1, 350, 650, 4, 1)).toBe(true);
    expect(store.get(0, 1)![0]!.grain).toBe(4);
    expect(store.prefer(0, 1, 350, 650, 1, 1)).toBe(false);
    for (let at = 0; at < 20; at += 1) add(at * 10, at * 10 + 9, 0.1);
    expect(store.get(0, 1)!.length).toBeLessThanOrEqual(11);
    expect(store.get(0, 1)!.at(-1)!.isWhole).toBe(true);
  });
  it("keeps what the view needs, however many others are like it", () => {
    const store = new Store();
    const add = (begin: number, grain: number): void => store.addRects(answer({ begin, end: begin + 100, tracks: [1] }), 0, [1], grain, 1, false);
    add(0, 1.01);
    for (let at = 1; at < 40; at += 1) {
      add(at * 1000, 1);
      expect(store.prefer(0, 1, at * 1000, at * 1000 + 100, 1, 1)).toBe(true);
      expect(store.has(0, 1, 0, 100, 1, 1)).toBe(true);
    }
    expect(store.get(0, 1)!.length).toBeLessThanOrEqual(11);
  });
  it("forgets what an older generation said once the newer one says it", () => {
    const store = new Store();
    store.addRects(answer({ begin: 0, end: 500, tracks: [1] }), 0, [1], 4, 1, false);
    store.addRects(answer({ begin: 400, end: 900, tracks: [1] }), 0, [1], 4, 2, false);
    expect(store.get(0, 1)!.map((one) => one.generation)).toEqual([2]);
  });
  it("does together for what one alone does not reach", () => {
    const store = new Store();
    store.addRects(answer({ begin: 0, end: 500, tracks: [1] }), 0, [1], 4, 1, false);
    store.addRects(answer({ begin: 500, end: 900, tracks: [1] }), 0, [1], 4, 1, false);
    expect(store.prefer(0, 1, 200, 800, 4, 1)).toBe(true);
    expect(store.prefer(0, 1, 200, 950, 4, 1)).toBe(false);
    expect(pieces(store.get(0, 1), 200, 800).map(({ begin, end }) => [begin, end])).toEqual([[200, 500], [500, 800]]);
    expect(cover([], 0, 1)).toBeNull();
  });
  it("does for a view at the same grain", () => {
    const tile = { begin: 0, end: 100, grain: 1, generation: 1, isWhole: false, lanes: [], plot: null, used: 0 };
    expect(isFine(tile, 1, 1)).toBe(true);
    expect(isFine(tile, 0.1, 1)).toBe(false);
    expect(isFine(tile, 1, 2)).toBe(false);
    expect([cover([tile], 0, 100), cover([tile], 0, 101), cover([tile], -1, 50)]).toEqual([[tile], null, null]);
  });
});
