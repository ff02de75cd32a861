/** Draws the rectangles of a frame as pixels in memory: a canvas without a GPU takes three times as long for thousands of small ones. */
import { pixel } from "../../base/rgb";
import { type Boxes, type DrawList, FIELDS } from "./pack";

/** Pixels that are sooner written one by one than by a call that fills. */
const FEW = 24;

export class Pixels {
  #image: ImageData | null = null;
  #words = new Uint32Array(0);
  #width = 0;
  #top = 0;
  #bottom = 0;

  /** Clips all further painting to the rows between two pixels of the canvas. */
  within(width: number, height: number, top: number, bottom: number): void {
    const [wide, high] = [Math.max(width, 1), Math.max(height, 1)];
    if (this.#image?.width !== wide || this.#image.height !== high) {
      this.#image = new ImageData(wide, high);
      this.#words = new Uint32Array(this.#image.data.buffer);
    }
    this.#width = wide;
    this.#top = Math.max(top, 0);
    this.#bottom = Math.min(bottom, high);
  }

  /** Puts these rows on the canvas. */
  show(context: CanvasRenderingContext2D): void {
    if (this.#image !== null && this.#bottom > this.#top) context.putImageData(this.#image, 0, 0, 0, this.#top, this.#width, this.#bottom - this.#top);
  }

  /** A rectangle of one colour, 0xRRGGBB. */
  fill(color: number, x: number, y: number, width: number, height: number): void {
    this.#box(pixel(color), x, y, width, height);
  }

  fillAll(color: number, { data, length }: Boxes): void {
    const word = pixel(color);
    for (let at = 0; at < length; at += 4) this.#box(word, data[at]!, data[at + 1]!, data[at + 2]!, data[at + 3]!);
  }

  #box(word: number, x: number, y: number, width: number, height: number): void {
    const left = Math.max(x, 0);
    const right = Math.min(x + width, this.#width);
    const top = Math.max(y, this.#top);
    const bottom = Math.min(y + height, this.#bottom);
    if (left >= right || top >= bottom) return;
    if (right - left > FEW) {
      this.#row(word, top, left, right);
      this.#repeat(top, bottom, left, right);
    } else for (let row = top; row < bottom; row += 1) this.#row(word, row, left, right);
  }

  /** The rectangles of a list. Those of a lane follow each other in it: one of its rows is painted, the others are copies. */
  paint({ data, rectangles }: DrawList, palette: { pixel(shade: number): number }): void {
    const end = rectangles * FIELDS;
    for (let at = 0; at < end; ) {
      const y = data[at + 1]!;
      const height = data[at + 3]!;
      const top = Math.max(y, this.#top);
      const bottom = Math.min(y + height, this.#bottom);
      let first = this.#width;
      let last = 0;
      for (; at < end && data[at + 1] === y && data[at + 3] === height; at += FIELDS) {
        const left = Math.max(data[at]!, 0);
        const right = Math.min(data[at]! + data[at + 2]!, this.#width);
        if (left >= right || top >= bottom) continue;
        this.#row(palette.pixel(data[at + 4]!), top, left, right);
        if (left < first) first = left;
        if (right > last) last = right;
      }
      if (first < last) this.#repeat(top, bottom, first, last);
    }
  }

  #row(word: number, row: number, left: number, right: number): void {
    const words = this.#words;
    const from = row * this.#width + left;
    const to = row * this.#width + right;
    if (to - from > FEW) words.fill(word, from, to);
    else for (let at = from; at < to; at += 1) words[at] = word;
  }

  /** Copies a part of a row to all rows below it. */
  #repeat(top: number, bottom: number, left: number, right: number): void {
    const from = top * this.#width + left;
    const to = top * this.#width + right;
    for (let row = top + 1; row < bottom; row += 1) this.#words.copyWithin(row * this.#width + left, from, to);
  }
}
