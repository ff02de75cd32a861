/** The input of one frame: made by the stage, read by the painters. */
import type { Meta } from "../../data/types";
import type { Span } from "../../data/source";
import type { Store } from "../data/tiles";
import type { Layout, Row } from "../layout/rows";
import type { Scale } from "../layout/scale";
import type { Lights } from "./lights";
import type { DrawList } from "./pack";
import type { Palette } from "./palette";
import type { Pixels } from "./pixels";
import type { TextFit } from "./text";

/** Height of the time axis, CSS pixels. */
export const AXIS = 26;
/** The pinned rows get at most this share of the height. */
const PINNED_SHARE = 0.5;

/** Where zones of rows are seen, CSS pixels from the top of the canvas. */
export interface Window {
  rows: readonly Row[];
  top: number;
  bottom: number;
  /** What is added to a row's `y`. */
  shift: number;
}

export interface Frame {
  context: CanvasRenderingContext2D;
  /** Device pixels for a CSS pixel. */
  ratio: number;
  /** Device pixels. */
  width: number;
  height: number;
  view: Span;
  scale: Scale;
  windows: readonly Window[];
  palette: Palette;
  lights: Lights;
  fit: TextFit;
  list: DrawList;
  pixels: Pixels;
  store: Store;
  meta: Meta | null;
  offsets: readonly number[];
}

/** Height of the pinned rows on a canvas of some CSS pixels. */
export function heldHeight(layout: Layout, height: number): number {
  return Math.min(layout.pinned.height, Math.floor(Math.max(height - AXIS, 0) * PINNED_SHARE));
}

/** Heights of the zones on a canvas of some CSS pixels. */
export function windowsOf(layout: Layout, scroll: number, pinnedScroll: number, height: number): Window[] {
  const held = heldHeight(layout, height);
  const main: Window = { rows: layout.main.rows, top: AXIS + held, bottom: height, shift: AXIS + held - scroll };
  if (held === 0) return [main];
  return [main, { rows: layout.pinned.rows, top: AXIS, bottom: AXIS + held, shift: AXIS - pinnedScroll }];
}

/** What is seen in a window of a canvas y; null on the axis. */
export function windowAt(windows: readonly Window[], y: number): Window | null {
  return windows.find((one) => y >= one.top && y < one.bottom) ?? null;
}

export function font(ratio: number, size = 11, weight = ""): string {
  return `${weight} ${Math.round(size * ratio)}px Inter, "Segoe UI", "Noto Sans", "Liberation Sans", system-ui, sans-serif`.trim();
}
