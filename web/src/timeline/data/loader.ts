/** Asks for what the view needs and nothing twice: one question at a time for each report, the newest wish next, more than is seen so that panning has it already. */
import type { Source, Span } from "../../data/source";
import type { Track } from "../../data/types";
import type { Store } from "./tiles";

export interface Wish {
  report: number;
  /** The view on the report's own clock. */
  view: Span;
  /** All of the report. */
  whole: Span;
  /** Pixels across the view. */
  width: number;
  /** Those that are seen. */
  tracks: readonly Track[];
  /** Those that scrolling would soon show. */
  near: readonly Track[];
  generation: number;
}

/** Asked for in views: a little on either side while somebody waits, then all of a side, ahead of a pan, where there is less than so much left. */
export const NEAR = 0.1;
export const OVER = 1;
export const AHEAD = 0.35;
/** Rectangles of an answer, of which 8,000 are on the screen. 360 KB. */
const MOST = 10_000;
/** After a failure, ms. */
const PAUSE = 2000;

export interface Question {
  begin: number;
  end: number;
  width: number;
  tracks: number[];
  plots: number[];
  isWhole: boolean;
}

type Parts = Pick<Store, "prefer">;

/** What a wish still needs; null: nothing. Puts what serves it first in the store. */
export function question(wish: Wish, store: Parts): Question | null {
  const { begin, end } = wish.view;
  const over = (end - begin) * NEAR;
  return lacking(wish, wish.tracks, store, { begin, end }, { begin: begin - over, end: end + over });
}

/** What scrolling or a pan would soon need: rows beyond the edges, then what was before, then what comes after. */
export function questionAhead(wish: Wish, store: Parts): Question | null {
  const { begin, end } = wish.view;
  const width = end - begin;
  const all = [...wish.tracks, ...wish.near];
  return (
    lacking(wish, wish.near, store, { begin, end }, { begin: begin - width * NEAR, end: end + width * NEAR }) ??
    lacking(wish, all, store, { begin: begin - width * AHEAD, end: begin }, { begin: begin - width * OVER, end: begin }) ??
    lacking(wish, all, store, { begin: end, end: end + width * AHEAD }, { begin: end, end: end + width * OVER })
  );
}

/** The question for `wanted`, where some of `needed` is not there yet. */
function lacking(wish: Wish, tracks: readonly Track[], store: Parts, needed: Span, wanted: Span): Question | null {
  const { view, whole } = wish;
  const grain = (view.end - view.begin) / Math.max(wish.width, 1);
  const begin = Math.max(needed.begin, whole.begin);
  const end = Math.min(needed.end, whole.end);
  if (!(end > begin)) return null;
  const without = tracks.filter((one) => !store.prefer(wish.report, one.track, begin, end, grain, wish.generation));
  if (without.length === 0) return null;
  const from = Math.max(wanted.begin, whole.begin);
  const to = Math.min(wanted.end, whole.end);
  return {
    begin: from,
    end: to,
    width: Math.max(Math.round((to - from) / grain), 16),
    tracks: without.filter((one) => one.kind !== "counter").map((one) => one.track),
    plots: without.filter((one) => one.kind === "counter").map((one) => one.track),
    isWhole: from <= whole.begin && to >= whole.end,
  };
}

export interface LoaderEvents {
  /** Something came that was wished for at a time of `performance.now()`; null: it was asked for ahead. */
  came(since: number | null): void;
  failed(error: Error): void;
}

export class Loader {
  readonly #source: Source;
  readonly #store: Store;
  readonly #events: LoaderEvents;
  readonly #busy = new Map<number, { control: AbortController; isAhead: boolean }>();
  readonly #next = new Map<number, Wish>();
  readonly #since = new Map<number, number>();
  #closed = false;
  #paused = 0;

  constructor(source: Source, store: Store, events: LoaderEvents) {
    this.#source = source;
    this.#store = store;
    this.#events = events;
  }

  /** Takes the newest wish of a report; an older one that was not asked yet is forgotten. Returns whether something is on its way. */
  want(wish: Wish): boolean {
    this.#next.set(wish.report, wish);
    if (!this.#since.has(wish.report)) this.#since.set(wish.report, performance.now());
    const busy = this.#busy.get(wish.report);
    if (busy === undefined) void this.#run(wish.report);
    // What somebody waits for goes before what nobody sees yet.
    else if (busy.isAhead && question(wish, this.#store) !== null) busy.control.abort();
    return this.#busy.has(wish.report);
  }

  get busy(): boolean {
    return this.#busy.size > 0;
  }

  close(): void {
    this.#closed = true;
    for (const one of this.#busy.values()) one.control.abort();
  }

  async #run(report: number): Promise<void> {
    for (;;) {
      const wish = this.#next.get(report);
      const able = wish !== undefined && !this.#closed && performance.now() >= this.#paused;
      const seen = able ? question(wish, this.#store) : null;
      const asked = seen ?? (able ? questionAhead(wish, this.#store) : null);
      this.#next.delete(report);
      if (asked === null || wish === undefined) {
        this.#since.delete(report);
        return;
      }
      const since = this.#since.get(report) ?? performance.now();
      const control = new AbortController();
      this.#busy.set(report, { control, isAhead: seen === null });
      try {
        await this.#ask(wish, asked, control.signal);
        if (this.#closed) return;
        this.#since.delete(report);
        this.#events.came(seen === null ? null : since);
      } catch (error) {
        if (this.#closed) return;
        if (control.signal.aborted) continue;
        // A server that is gone is not asked a hundred times a second.
        this.#paused = performance.now() + PAUSE;
        this.#events.failed(error instanceof Error ? error : new Error(String(error)));
      } finally {
        this.#busy.delete(report);
      }
    }
  }

  async #ask(wish: Wish, asked: Question, signal: AbortSignal): Promise<void> {
    const grain = (asked.end - asked.begin) / asked.width;
    const query = { report: wish.report, begin: asked.begin, end: asked.end, width: asked.width, limit: MOST, generation: wish.generation };
    await Promise.all([
      asked.tracks.length > 0 &&
        this.#source.viewport({ ...query, tracks: asked.tracks }, signal).then((rects) =>
          this.#store.addRects(rects, wish.report, asked.tracks, grain, wish.generation, asked.isWhole),
        ),
      asked.plots.length > 0 &&
        this.#source.plots({ ...query, tracks: asked.plots }, signal).then((plots) =>
          this.#store.addPlots(plots, asked, wish.report, asked.plots, grain, wish.generation, asked.isWhole),
        ),
    ]);
  }
}
