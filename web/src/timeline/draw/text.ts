/** Text in boxes: widths measured once for each name, cut with an ellipsis where it does not fit. */
import { short, shortest } from "../../base/names";

/** Names beyond this are measured by their beginning: nobody sees more. */
const LONGEST = 160;
/** Size of the cache; a full cache is emptied at once. */
const MOST = 20_000;

interface Measured {
  forms: string[];
  widths: number[];
  /** Cuts by the width they are for, in steps of 4 pixels. */
  cuts: Map<number, string>;
}

export type Measure = (text: string) => number;

export class TextFit {
  readonly #measure: Measure;
  readonly #known = new Map<string, Measured>();

  constructor(measure: Measure) {
    this.#measure = measure;
  }

  /** Cut a name to fit into a width in pixels; empty if not even three letters fit. */
  fit(text: string, room: number): string {
    let one = this.#known.get(text);
    if (one === undefined) {
      if (this.#known.size >= MOST) this.#known.clear();
      const forms = [...new Set([short(text), shortest(text)])].map((form) => form.slice(0, LONGEST));
      one = { forms, widths: forms.map(this.#measure), cuts: new Map() };
      this.#known.set(text, one);
    }
    for (let index = 0; index < one.forms.length; index += 1) if (one.widths[index]! <= room) return one.forms[index]!;
    const step = room >> 2;
    let cut = one.cuts.get(step);
    if (cut === undefined) {
      cut = this.#cut(one.forms.at(-1)!, step << 2);
      one.cuts.set(step, cut);
    }
    return cut;
  }

  #cut(text: string, room: number): string {
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#measure(`${text.slice(0, middle)}…`) <= room) low = middle;
      else high = middle - 1;
    }
    // Not through the middle of a letter of two halves.
    const code = text.charCodeAt(low - 1);
    if (code >= 0xd800 && code < 0xdc00) low -= 1;
    return low < 2 ? "" : `${text.slice(0, low)}…`;
  }
}
