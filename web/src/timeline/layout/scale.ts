/** Time to pixels and back. Everything on the canvas is in device pixels, so that edges of rectangles fall on whole ones. */
import type { Span } from "../../data/source";

export interface Scale {
  begin: number;
  /** ns for a pixel. */
  grain: number;
  /** Pixels across. */
  width: number;
}

export function scaleOf(view: Span, width: number): Scale {
  return { begin: view.begin, grain: Math.max(view.end - view.begin, Number.MIN_VALUE) / Math.max(width, 1), width };
}

export function toPixel(scale: Scale, time: number): number {
  return (time - scale.begin) / scale.grain;
}

export function toTime(scale: Scale, pixel: number): number {
  return scale.begin + pixel * scale.grain;
}
