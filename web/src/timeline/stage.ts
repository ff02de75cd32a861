/** Draws only when something changed: follows the signals, requests data, paints two canvases within one frame. */
import { effect, untracked } from "@preact/signals";
import { colorBy, details, found, hovered, marks, meta, notice, offsets, ranges, selected, source, trees, view } from "../app/state";
import type { Located, TrackNode } from "../data/types";
import { measureFrame, measureRefine } from "./data/measures";
import { correlated } from "./data/correlated";
import { Loader, type LoaderEvents } from "./data/loader";
import { Store } from "./data/tiles";
import { wishesFor } from "./data/wishes";
import { taken } from "./early";
import { paintBase } from "./draw/base";
import { type Frame, type Window, font, windowsOf } from "./draw/frame";
import { Lights } from "./draw/lights";
import type { Target } from "./draw/links";
import { paintOverlay } from "./draw/overlay";
import { DrawList } from "./draw/pack";
import { Palette } from "./draw/palette";
import { Pixels } from "./draw/pixels";
import { TextFit } from "./draw/text";
import { DARK, LIGHT } from "../base/canvas";
import { isDark } from "./parts/dark";
import { whenIdle } from "../base/dom";
import { rowsBetween } from "./layout/rows";
import { scaleOf } from "./layout/scale";
import { answered, arrivals, focusedEvent, layout, overviewed, pinnedScroll, places, pointer, rested, scroll, size } from "./local";

/** After a failure, ms: a little more than the loader pauses. */
const RETRY = 2100;

interface Named {
  id: string;
  report: number;
  track: number;
}

function namesOf(all: readonly (readonly TrackNode[])[]): Map<string, Named> {
  const names = new Map<string, Named>();
  const visit = (nodes: readonly TrackNode[], report: number): void => {
    for (const node of nodes) {
      if (node.track !== undefined) names.set(Store.key(report, node.track.track), { id: node.id, report, track: node.track.track });
      visit(node.children, report);
    }
  };
  all.forEach(visit);
  return names;
}

type Mover = (elapsed: number) => boolean;

export class Stage {
  readonly store: Store;
  readonly #base: CanvasRenderingContext2D;
  readonly #over: CanvasRenderingContext2D;
  readonly #list = new DrawList();
  readonly #pixels = new Pixels();
  readonly #ends: (() => void)[] = [];
  #fit!: TextFit;
  #lights!: Lights;
  #loader: Loader | null = null;
  #baseDirty = true;
  #overDirty = true;
  #overPainted = false;
  #asked = 0;
  #before = 0;
  /** Since when what now came was wished for. */
  #since: number | null = null;
  /** Which row a track was, when the trees came: a running capture may give its number to another one. */
  #named: ReadonlyMap<string, Named> = new Map();
  #targets: readonly Target[] = [];
  /** Moves the view while a key is held; false: done. */
  mover: Mover | null = null;

  constructor(base: HTMLCanvasElement, over: HTMLCanvasElement) {
    let early = taken(source.peek());
    this.store = early?.store ?? new Store();
    this.#base = base.getContext("2d", { alpha: false })!;
    this.#over = over.getContext("2d")!;
    this.#ends.push(
      effect(() => {
        const { width, height, ratio } = size.value;
        for (const canvas of [base, over]) {
          canvas.width = Math.round(width * ratio);
          canvas.height = Math.round(height * ratio);
        }
        this.#fit = new TextFit((text) => {
          this.#base.font = font(ratio);
          return this.#base.measureText(text).width;
        });
        this.touch();
      }),
      effect(() => {
        this.#lights = new Lights(new Palette(isDark.value ? DARK : LIGHT), colorBy.value, found.value);
        this.touch();
      }),
      effect(() => {
        this.#loader?.close();
        const from = source.value;
        const events: LoaderEvents = {
          came: (since) => {
            answered.value = true;
            arrivals.value += 1;
            this.#since = since ?? this.#since;
            this.touch();
          },
          failed: (error) => {
            notice.value = error.message;
            this.touch();
            setTimeout(() => this.touch(), RETRY);
          },
        };
        if (early !== null) {
          this.#loader = early.loader;
          this.#loader.events = events;
          early = null;
        } else {
          this.store.clear();
          this.#loader = from === null ? null : new Loader(from, this.store, events);
        }
        this.touch();
      }),
      effect(() => {
        const names = namesOf(trees.value);
        for (const [key, { id, report, track }] of this.#named) if (names.get(key)?.id !== id) this.store.drop(report, track);
        this.#named = names;
        this.touch();
      }),
      effect(() => {
        void [size.value, view.value, layout.value, scroll.value, pinnedScroll.value, meta.value, offsets.value];
        // The server looks for the first data while the page makes its rows.
        if (!answered.peek() && source.peek() !== null) untracked(() => this.#want(this.windows()));
        this.touch();
      }),
      effect(() => {
        void [selected.value, details.value, hovered.value, ranges.value, marks.value, pointer.value, focusedEvent.value, overviewed.value];
        this.#touchOver();
      }),
    );
  }

  /** Something of the rows changed. */
  touch(): void {
    this.#baseDirty = true;
    this.#touchOver();
  }

  /** Moves on with every frame until `mover` says that it is done. */
  move(mover: Mover): void {
    this.mover = mover;
    this.#before = performance.now();
    this.#touchOver();
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#loader?.close();
    cancelAnimationFrame(this.#asked);
  }

  /** The event whose name stands at the end of an arrow at a point, CSS pixels. */
  targetAt(x: number, y: number): Located | null {
    const { ratio } = size.value;
    const hit = this.#targets.find((one) => x * ratio >= one.left && x * ratio < one.right && y * ratio >= one.top && y * ratio < one.bottom);
    return hit?.event ?? null;
  }

  windows(): Window[] {
    return windowsOf(layout.value, scroll.value, pinnedScroll.value, size.value.height);
  }

  #touchOver(): void {
    this.#overDirty = true;
    this.#settle(false);
    if (this.#asked === 0) this.#asked = requestAnimationFrame(this.#paint);
  }

  #frame(): Frame {
    const { width, height, ratio } = size.value;
    const wide = Math.round(width * ratio);
    return {
      context: this.#base, ratio, width: wide, height: Math.round(height * ratio), view: view.value, scale: scaleOf(view.value, wide),
      windows: this.windows(), palette: this.#lights.palette, lights: this.#lights, fit: this.#fit, list: this.#list, pixels: this.#pixels, store: this.store,
      meta: meta.value, offsets: offsets.value,
    };
  }

  #want(windows: readonly Window[]): void {
    const loader = this.#loader;
    if (loader !== null) for (const wish of wishesFor(windows)) loader.want(wish);
  }

  readonly #paint = (now: number): void => {
    this.#asked = 0;
    const begun = performance.now();
    if (this.mover !== null) {
      const elapsed = Math.min(Math.max(now - this.#before, 0), 50);
      this.#before = now;
      if (this.mover(elapsed)) this.#touchOver();
      else this.mover = null;
    }
    if (size.value.width <= 0) return;
    const frame = this.#frame();
    if (this.#baseDirty) {
      this.#baseDirty = false;
      this.#want(frame.windows);
      paintBase(frame);
    }
    if (this.#overDirty) {
      this.#overDirty = this.mover !== null;
      this.#paintOver(frame);
    }
    measureFrame(begun, frame.list.rectangles);
    if (this.#since !== null) {
      measureRefine(this.#since);
      this.#since = null;
    }
    const isWhole = meta.value !== null && trees.value.length >= meta.value.reports.length;
    if (isWhole && this.#loader?.busy === false) answered.value = true;
    if (isWhole && this.#asked === 0 && this.#loader?.busy === false && overviewed.value) {
      this.#settle(true);
      if (!rested.value) whenIdle(() => (rested.value = true));
    }
  };

  #paintOver(frame: Frame): void {
    const is = [selected.value, hovered.value, focusedEvent.value, pointer.value].some((one) => one !== null) || ranges.value.length + marks.value.length > 0;
    // An empty canvas that stays empty costs a copy of all its pixels all the same.
    if (!is && !this.#overPainted) return;
    this.#overPainted = is;
    const rows = selected.value === null ? [] : frame.windows.flatMap((one) => rowsBetween(one.rows, one.top - one.shift, one.bottom - one.shift));
    this.#targets = paintOverlay({
      frame: { ...frame, context: this.#over }, places: places.value, selected: selected.value, details: details.value, hovered: hovered.value,
      focused: focusedEvent.value, correlated: selected.value === null ? [] : correlated(this.store, rows, selected.value), ranges: ranges.value,
      marks: marks.value, pointer: pointer.value,
    });
  }

  /** Says in the page whether what is seen is all that is to be seen of it: what drives the page from outside waits for that. */
  #settle(isSettled: boolean): void {
    document.documentElement.dataset["settled"] = isSettled ? "yes" : "no";
  }
}
