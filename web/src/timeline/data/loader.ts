/** Asks for what the view needs and nothing twice: one question at a time for each report, the newest wish next, then more than is seen, so that panning and zooming have it already. */
import type { Source, Span } from "../../data/source";
import type { Track } from "../../data/types";
import { SLACK, type Store } from "./tiles";

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
  /** Where one would zoom in, on the report's own clock. */
  at: number;
}

/** Asked for in views: a little on either side while somebody waits, then all of a side, ahead of a pan, where there is less than so much left. */
export const NEAR = 0.1;
export const OVER = 1;
export const AHEAD = 0.35;
/** Rectangles joined over this many pixels are requested again, before zooming on makes them too
 * coarse. */
export const SOON = 1.25;
/** The loader also requests tiles of this many times the zoom. */
export const DEEPER = 2;
/** No view is asked for ahead that is narrower, ns. */
const NARROW = 40;
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

type Parts = Pick<Store, "prefer" | "has">;

function around({ begin, end }: Span, share: number): Span {
  const by = (end - begin) * share;
  return { begin: begin - by, end: end + by };
}

function grainOf({ view, width }: Wish): number {
  return (view.end - view.begin) / Math.max(width, 1);
}

/** The part of a span that was recorded. */
function within(span: Span, whole: Span): Span {
  return { begin: Math.max(span.begin, whole.begin), end: Math.min(span.end, whole.end) };
}

/** What a wish still needs; null: nothing. Puts what serves it first in the store. */
export function question(wish: Wish, store: Parts): Question | null {
  const grain = grainOf(wish);
  const { begin, end } = within(wish.view, wish.whole);
  if (!(end > begin)) return null;
  return made(wish, wish.tracks.filter((one) => !store.prefer(wish.report, one.track, begin, end, grain, wish.generation)), around(wish.view, NEAR), grain);
}

/** What zooming on, scrolling or a pan would soon need: finer data, rows beyond the edges, what was before, what comes after, what is nearer. */
export function questionAhead(wish: Wish, store: Parts): Question | null {
  const { view } = wish;
  const { begin, end } = view;
  const width = end - begin;
  const grain = grainOf(wish);
  const all = [...wish.tracks, ...wish.near];
  const lacking = (tracks: readonly Track[], needed: Span, wanted: Span, pixel = grain, slack = SLACK): Question | null => {
    const span = within(needed, wish.whole);
    if (!(span.end > span.begin)) return null;
    return made(wish, tracks.filter((one) => !store.has(wish.report, one.track, span.begin, span.end, pixel, wish.generation, slack)), wanted, pixel);
  };
  const at = Math.min(Math.max(wish.at, begin), end);
  const nearer = { begin: at - (at - begin) / DEEPER, end: at + (end - at) / DEEPER };
  return (
    lacking(wish.tracks, view, around(view, NEAR), grain, SOON) ??
    lacking(wish.near, view, around(view, NEAR)) ??
    lacking(all, { begin: begin - width * AHEAD, end: begin }, { begin: begin - width * OVER, end: begin }) ??
    lacking(all, { begin: end, end: end + width * AHEAD }, { begin: end, end: end + width * OVER }) ??
    (width > NARROW ? lacking(wish.tracks, nearer, around(nearer, NEAR), grain / DEEPER) : null)
  );
}

/** The question about tracks that lack something; null: there are none. */
function made(wish: Wish, tracks: readonly Track[], wanted: Span, grain: number): Question | null {
  if (tracks.length === 0) return null;
  const { begin, end } = within(wanted, wish.whole);
  return {
    begin,
    end,
    width: Math.max(Math.round((end - begin) / grain), 16),
    tracks: tracks.filter((one) => one.kind !== "counter").map((one) => one.track),
    plots: tracks.filter((one) => one.kind === "counter").map((one) => one.track),
    isWhole: begin <= wish.whole.begin && end >= wish.whole.end,
  };
}

/** Will the answer to a question that is under way do for a wish that lacks `tracks` and `plots`? */
function serves(asked: Question, { tracks, plots }: Question, wish: Wish): boolean {
  const { begin, end } = within(wish.view, wish.whole);
  const grain = (asked.end - asked.begin) / asked.width;
  return (
    asked.begin <= begin && asked.end >= end && grain <= grainOf(wish) * SLACK &&
    tracks.every((one) => asked.tracks.includes(one)) && plots.every((one) => asked.plots.includes(one))
  );
}

export interface LoaderEvents {
  /** Something came that was wished for at a time of `performance.now()`; null: it was asked for ahead. */
  came(since: number | null): void;
  failed(error: Error): void;
}

interface Running {
  control: AbortController;
  asked: Question;
  generation: number;
  isAhead: boolean;
}

export class Loader {
  readonly #source: Source;
  readonly #store: Store;
  /** Who hears of it: another one from now on, where it is handed over. */
  events: LoaderEvents;
  readonly #running = new Map<number, Running>();
  readonly #next = new Map<number, Wish>();
  /** Since when what is seen of a report is not all there, or not fine enough. */
  readonly #since = new Map<number, number>();
  /** What was answered for the view that is seen, by report: to ask it again would change nothing, whatever the store could keep. */
  readonly #answered = new Map<number, { view: string; questions: Set<string> }>();
  #closed = false;
  #paused = 0;

  constructor(source: Source, store: Store, events: LoaderEvents) {
    this.#source = source;
    this.#store = store;
    this.events = events;
  }

  /** Takes the newest wish of a report; an older one that was not asked yet is forgotten. Returns whether something is on its way. */
  want(wish: Wish): boolean {
    const { report } = wish;
    this.#next.set(report, wish);
    const lacked = question(wish, this.#store);
    if (lacked === null) this.#since.delete(report);
    else if (!this.#since.has(report)) this.#since.set(report, performance.now());
    const running = this.#running.get(report);
    if (running === undefined) void this.#run(report);
    // What somebody waits for goes before what nobody sees yet.
    else if (running.isAhead && lacked !== null && !(running.generation === wish.generation && serves(running.asked, lacked, wish))) running.control.abort();
    return this.#running.has(report);
  }

  get busy(): boolean {
    return this.#running.size > 0;
  }

  close(): void {
    this.#closed = true;
    for (const one of this.#running.values()) one.control.abort();
  }

  async #run(report: number): Promise<void> {
    for (;;) {
      const wish = this.#next.get(report);
      const able = wish !== undefined && !this.#closed && performance.now() >= this.#paused;
      const seen = able ? question(wish, this.#store) : null;
      const asked = seen ?? (able ? questionAhead(wish, this.#store) : null);
      this.#next.delete(report);
      if (asked === null || wish === undefined) return;
      const known = this.#known(wish);
      const key = JSON.stringify(asked);
      if (known.has(key)) return;
      const control = new AbortController();
      this.#running.set(report, { control, asked, generation: wish.generation, isAhead: seen === null });
      try {
        await this.#ask(wish, asked, control.signal);
        if (this.#closed) return;
        known.add(key);
        this.#came(this.#next.get(report) ?? wish);
      } catch (error) {
        if (this.#closed) return;
        if (control.signal.aborted) continue;
        // A server that is gone is not asked a hundred times a second.
        this.#paused = performance.now() + PAUSE;
        this.events.failed(error instanceof Error ? error : new Error(String(error)));
      } finally {
        this.#running.delete(report);
      }
    }
  }

  #known({ report, view, width, generation, at }: Wish): Set<string> {
    const now = [view.begin, view.end, width, generation, at].join();
    let known = this.#answered.get(report);
    if (known?.view !== now) this.#answered.set(report, (known = { view: now, questions: new Set() }));
    return known.questions;
  }

  /** Where the view has moved on and still lacks something, somebody still waits. */
  #came(wish: Wish): void {
    const isThere = question(wish, this.#store) === null;
    this.events.came(isThere ? (this.#since.get(wish.report) ?? null) : null);
    if (isThere) this.#since.delete(wish.report);
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
