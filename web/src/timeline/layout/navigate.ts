/** Moves the view: arithmetic on spans alone. */
import type { Span } from "../../data/source";

/** The narrowest view, ns: as in `show`. */
const LEAST = 10;

/** Nearer (`factor` < 1) or further, so that the time `at` stays where it is on the screen. */
export function zoomAt(view: Span, at: number, factor: number): Span {
  const width = view.end - view.begin;
  const wanted = Math.max(width * factor, LEAST);
  const share = width > 0 ? (at - view.begin) / width : 0.5;
  const begin = at - share * wanted;
  return { begin, end: begin + wanted };
}

/** Moves by a share of what is seen: 1 is one screen to the right. */
export function panBy(view: Span, share: number): Span {
  const by = (view.end - view.begin) * share;
  return { begin: view.begin + by, end: view.end + by };
}

/** Keeps the recording on the screen: at least `part` of the view shows some of it; never wider than twice the recording. */
export function hold(view: Span, whole: Span, part = 0.25): Span {
  const length = whole.end - whole.begin;
  if (!(length > 0)) return view;
  const width = Math.min(view.end - view.begin, length * 2);
  const most = whole.end - width * part;
  const least = whole.begin - width * (1 - part);
  const middle = (view.begin + view.end) / 2;
  const begin = Math.min(Math.max(middle - width / 2, least), Math.max(most, least));
  return { begin, end: begin + width };
}

/** A span with some air on both sides. */
export function fitTo(span: Span, air = 0.12): Span {
  const width = Math.max(span.end - span.begin, LEAST);
  return { begin: span.begin - width * air, end: span.begin + width * (1 + air) };
}

/** An event: all of it; one without length, ten times nearer than now. */
export function fitEvent(view: Span, begin: number, duration: number): Span {
  if (duration > 0) return fitTo({ begin, end: begin + duration });
  const half = Math.max(view.end - view.begin, LEAST * 10) / 20;
  return { begin: begin - half, end: begin + half };
}

/** The same span where its ends were dragged past each other. */
export function ordered(a: number, b: number): Span {
  return a <= b ? { begin: a, end: b } : { begin: b, end: a };
}

/** The candidate nearest to a time, where one is at most `reach` away. */
export function snap(time: number, candidates: Iterable<number>, reach: number): number {
  let best = time;
  let distance = reach;
  for (const one of candidates) {
    const off = Math.abs(one - time);
    if (off <= distance) {
      distance = off;
      best = one;
    }
  }
  return best;
}

/** How much a turn of the wheel zooms; mice turn by 100 or so, touch pads by single pixels. */
export function wheelFactor(delta: number): number {
  return Math.exp(Math.min(Math.max(delta, -240), 240) * 0.0022);
}
