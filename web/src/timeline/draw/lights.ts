/** Colours and highlights for the names of an answer, computed once for each answer. */
import type { ColorBy, Found } from "../../app/state";
import type { Rects } from "../../data/types";
import type { Palette } from "./palette";

/** Names in viewports are cut at about this number of bytes; longer hits are compared by their beginning. */
const CUT = 60;

export class Lights {
  readonly palette: Palette;
  readonly by: ColorBy;
  readonly #found: Found | null;
  readonly #long: string[];
  readonly #colors = new WeakMap<Rects, Map<string, Uint16Array>>();
  readonly #lit = new WeakMap<Rects, Uint8Array>();
  readonly #links = new Map<number, number>();

  constructor(palette: Palette, by: ColorBy, found: Found | null) {
    this.palette = palette;
    this.by = by;
    this.#found = found !== null && found.names.size > 0 ? found : null;
    this.#long = [...(found?.names ?? [])].filter((name) => name.length > CUT);
  }

  /** Colour numbers by the index of a name, for events of one layer. */
  colors(rects: Rects, layer: string): Uint16Array {
    let layers = this.#colors.get(rects);
    if (layers === undefined) this.#colors.set(rects, (layers = new Map()));
    let colors = layers.get(layer);
    if (colors === undefined) {
      const by = this.by === "correlation" ? "name" : this.by;
      colors = Uint16Array.from(rects.names, ({ text, color }) => this.palette.of(by, layer, text, color, 0));
      layers.set(layer, colors);
    }
    return colors;
  }

  /** The colour number of a link, where colours go by that. */
  readonly link = (link: number): number => {
    let color = this.#links.get(link);
    if (color === undefined) this.#links.set(link, (color = this.palette.of("correlation", "", "", null, link)));
    return color;
  };

  get byLink(): ((link: number) => number) | null {
    return this.by === "correlation" ? this.link : null;
  }

  /** Which names are hits of the search; null where nothing is searched. */
  lit(rects: Rects): Uint8Array | null {
    if (this.#found === null) return null;
    let lit = this.#lit.get(rects);
    if (lit === undefined) {
      lit = Uint8Array.from(rects.names, ({ text }) => (this.isLit(text) ? 1 : 0));
      this.#lit.set(rects, lit);
    }
    return lit;
  }

  isLit(text: string): boolean {
    if (this.#found === null) return true;
    if (this.#found.names.has(text)) return true;
    const beginning = text.endsWith("…") ? text.slice(0, -1) : text;
    return beginning.length >= CUT && this.#long.some((name) => name.startsWith(beginning));
  }
}
