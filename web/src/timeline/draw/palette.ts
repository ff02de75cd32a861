/** Shades: every colour that a frame may need, numbered, so that rectangles can be sorted by them; eight steps from the ground to full. */
import type { ColorBy } from "../../app/state";
import { alike, hash, kindOf, stateOf } from "../../base/names";
import { contrast, css, mix, pixel, seenOn } from "../../base/rgb";
import type { CanvasTheme } from "../../base/canvas";

/** Steps of a colour: the last is full, the first still seen. */
export const LEVELS = 8;
export const FULL = LEVELS - 1;
/** What is not lit while something is. */
export const DIM = 1;
/** Colours that programs gave, at most; further ones are rounded until they fit. */
const MOST = 1024;

/** What `nvtx.annotate` gives where nobody chose a colour: all in one blue tells nothing. */
const UNCHOSEN = 0x0000ff;
const BLACK = 0x0d1117;
const WHITE = 0xffffff;

export class Palette {
  readonly theme: CanvasTheme;
  readonly #colors: number[] = [];
  readonly #numbers = new Map<number, number>();
  readonly #pixels: (number | undefined)[] = [];
  readonly #inks: (0 | 1 | undefined)[] = [];

  constructor(theme: CanvasTheme) {
    this.theme = theme;
    for (const color of [...theme.fills, ...Object.values(theme.kinds), ...Object.values(theme.states)]) this.number(color);
  }

  get size(): number {
    return this.#colors.length;
  }

  /** The number of a colour, made where it is new. */
  number(color: number): number {
    const known = this.#numbers.get(color);
    if (known !== undefined) return known;
    if (this.#colors.length >= MOST && (color & 0x0f0f0f) !== 0) return this.number(color & 0xf0f0f0);
    this.#colors.push(color);
    this.#numbers.set(color, this.#colors.length - 1);
    return this.#colors.length - 1;
  }

  /** A pixel of a shade, `number * LEVELS + level`. */
  pixel(shade: number): number {
    return (this.#pixels[shade] ??= pixel(this.solid(shade)));
  }

  solid(shade: number): number {
    const level = shade % LEVELS;
    return mix(this.#colors[(shade / LEVELS) | 0]!, this.theme.ground, 0.16 + (0.84 * level) / FULL);
  }

  /** 0: black text is read on it, 1: white. */
  ink(shade: number): 0 | 1 {
    return (this.#inks[shade] ??= contrast(this.solid(shade), BLACK) >= contrast(this.solid(shade), WHITE) ? 0 : 1);
  }

  /** The number of the colour of an event. */
  of(by: ColorBy, layer: string, text: string, given: number | null, link: number): number {
    if (by === "correlation") {
      return link === 0xffffffff ? this.number(this.theme.kinds["other"]!) : this.#hashed(Math.imul(link, 0x9e3779b1) >>> 0);
    }
    const state = layer === "thread_states" || layer === "gil" ? this.theme.states[stateOf(text)] : undefined;
    if (state !== undefined) return this.number(state);
    if (by === "category") return this.number(this.theme.kinds[kindOf(layer, text)]!);
    if (given !== null && given !== UNCHOSEN) return this.number(seenOn(given, this.theme.ground, this.theme.ink));
    return this.#hashed(hash(alike(layer, text)));
  }

  #hashed(value: number): number {
    return this.number(this.theme.fills[value % this.theme.fills.length]!);
  }
}

export const INKS: readonly [string, string] = [css(BLACK), css(WHITE)];
