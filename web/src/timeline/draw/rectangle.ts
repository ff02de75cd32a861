/** Computes the place of an event on the canvas. */
import type { Located } from "../../data/types";
import type { Places } from "../layout/places";
import { toPixel } from "../layout/scale";
import { AXIS, type Frame, type Window } from "./frame";

export interface Rectangle {
  left: number;
  top: number;
  right: number;
  bottom: number;
  window: Window;
  folded: boolean;
}

/** Where an event lies on the canvas, device pixels, also beyond its edges; null where its track is not shown. */
export function rectangleOf(frame: Frame, places: Places, event: Located): Rectangle | null {
  const place = places.at(event);
  if (place === null) return null;
  const window = frame.windows.find((one) => (place.row.pinned ? one.top === AXIS && frame.windows.length > 1 : one === frame.windows[0]));
  if (window === undefined) return null;
  const begin = event.start + (frame.offsets[event.report] ?? 0);
  const left = Math.round(toPixel(frame.scale, begin));
  const top = Math.round((place.top + window.shift) * frame.ratio);
  return {
    left, top, right: Math.max(Math.round(toPixel(frame.scale, begin + event.duration)), left + 2), bottom: top + Math.round(place.height * frame.ratio),
    window, folded: place.folded,
  };
}
