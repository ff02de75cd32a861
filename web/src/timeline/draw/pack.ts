/** From columns of slices to rectangles in whole pixels, lane by lane: all arithmetic of a frame, and no drawing. */
import { firstWhere } from "../../data/cut";
import type { Rects } from "../../data/types";
import { type Scale, toPixel } from "../layout/scale";
import { DIM, FULL, LEVELS } from "./palette";

/** A joined rectangle wider than this many columns of its answer is one long slice with crumbs
 * beside it: it has that slice's name. */
const CARRIED = 8;

/** Four numbers for each rectangle: x, y, width, height. */
export class Boxes {
  data = new Int32Array(256);
  length = 0;

  push(x: number, y: number, width: number, height: number): void {
    if (this.length + 4 > this.data.length) {
      const grown = new Int32Array(this.data.length * 2);
      grown.set(this.data);
      this.data = grown;
    }
    this.data[this.length] = x;
    this.data[this.length + 1] = y;
    this.data[this.length + 2] = width;
    this.data[this.length + 3] = height;
    this.length += 4;
  }
}

export interface Label {
  text: string;
  x: number;
  y: number;
  width: number;
  height: number;
  shade: number;
}

/** Numbers of a rectangle in a list: x, y, width, height, shade. */
export const FIELDS = 5;

/** What a window of a frame draws; kept from frame to frame so that nothing is allocated while one pans. */
export class DrawList {
  data = new Int32Array(FIELDS * 1024);
  rectangles = 0;
  readonly labels: Label[] = [];

  clear(): void {
    this.rectangles = 0;
    this.labels.length = 0;
  }

  /** Makes the last rectangle wider. */
  widen(by: number): void {
    const at = (this.rectangles - 1) * FIELDS + 2;
    this.data[at] = this.data[at]! + by;
  }

  add(shade: number, x: number, y: number, width: number, height: number): void {
    const at = this.rectangles * FIELDS;
    if (at === this.data.length) {
      const grown = new Int32Array(this.data.length * 2);
      grown.set(this.data);
      this.data = grown;
    }
    const { data } = this;
    data[at] = x;
    data[at + 1] = y;
    data[at + 2] = width;
    data[at + 3] = height;
    data[at + 4] = shade;
    this.rectangles += 1;
  }
}

/** A run of slices of one lane. */
export interface Run {
  rects: Rects;
  first: number;
  count: number;
}

export interface LaneStyle {
  y: number;
  height: number;
  /** Colour numbers by the name's index, or by slice where `byLink`. */
  colors: Uint16Array;
  byLink: ((link: number) => number) | null;
  /** Names that are lit, by their index; null: all. */
  lit: Uint8Array | null;
  /** Events are points: they keep their width of a few pixels. */
  point: number;
  /** Minimum width of a label in pixels; 0: no labels. */
  labels: number;
}

/** Index of the first slice of a run that ends after a time. */
export function firstAfter(run: Run, time: number): number {
  const { start, duration } = run.rects;
  return firstWhere(run.first, run.first + run.count, (at) => start[at]! + duration[at]! > time || start[at]! >= time);
}

/** The level of a stretch that is busy by a share: little is seen, too, and half is nearer to all than to nothing. */
export function levelOf(share: number): number {
  return Math.min(FULL, 1 + ((Math.sqrt(share) * FULL) | 0));
}

/** Packs what of a run lies between two pixels, `from` to `to`; `offset` is added to its times. Returns how many rectangles it gave. */
export function packRun(list: DrawList, run: Run, scale: Scale, offset: number, from: number, to: number, style: LaneStyle): number {
  const { start, duration, name, slices, busy, link, names, grain } = run.rects;
  const already = list.rectangles;
  let before = -1;
  let edge = -1;
  const begin = scale.begin - offset;
  const last = run.first + run.count;
  const perNs = 1 / scale.grain;
  let filled = from;
  for (let at = firstAfter(run, begin + from * scale.grain); at < last; at += 1) {
    const exact = (start[at]! - begin) * perNs;
    if (exact >= to) break;
    const first = Math.round(exact);
    let left = first;
    let right = Math.round((start[at]! + duration[at]! - begin) * perNs);
    if (style.point > 0 && slices[at] === 1 && right - left < style.point) right = left + style.point;
    // What is narrower than a pixel gets one, but only once: the first of the pixel stands for all in it.
    if (right <= left) right = left + 1;
    if (left < filled) left = filled;
    const end = right < scale.width ? right : scale.width;
    if (right > to) right = to;
    const width = right - left;
    if (width <= 0) continue;
    filled = right;
    const color = style.byLink === null ? style.colors[name[at]!]! : style.byLink(link[at]!);
    let level = slices[at]! > 1 ? levelOf(busy[at]!) : FULL;
    if (style.lit !== null && style.lit[name[at]!] === 0) level = DIM;
    const shade = color * LEVELS + level;
    const drawn = width > 3 && end <= to ? width - 1 : width;
    // Where there is no gap between them two of a shade are one.
    if (shade === before && left === edge) list.widen(drawn);
    else list.add(shade, left, style.y, drawn, style.height);
    before = shade;
    edge = left + drawn;
    // What goes on in the next piece of the view has its name once, over all of it.
    if (style.labels > 0 && end - left >= style.labels && (first >= from || from === 0) && (slices[at] === 1 || duration[at]! > CARRIED * grain)) {
      list.labels.push({ text: names[name[at]!]!.text, x: left, y: style.y, width: end - left - 1, height: style.height, shade });
    }
  }
  return list.rectangles - already;
}

/** Busy share of each pixel column from lane 0 of several tracks: a closed group. Shares add up, to one at most. */
export function addBusy(into: Float32Array, run: Run, scale: Scale, offset: number): void {
  const { start, duration, busy } = run.rects;
  const shifted = { ...scale, begin: scale.begin - offset };
  const last = run.first + run.count;
  for (let at = firstAfter(run, shifted.begin); at < last; at += 1) {
    const left = toPixel(shifted, start[at]!);
    if (left >= into.length) break;
    const right = Math.min(toPixel(shifted, start[at]! + duration[at]!), into.length);
    const share = busy[at]!;
    const from = Math.max(Math.floor(left), 0);
    for (let column = from; column < right; column += 1) {
      const part = Math.min(right, column + 1) - Math.max(left, column);
      if (part > 0) into[column] = Math.min(1, into[column]! + part * share);
    }
  }
}
