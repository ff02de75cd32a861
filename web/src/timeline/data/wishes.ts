/** The visible part of each report, as a request for its data. */
import { meta, offsets, view } from "../../app/state";
import type { Track } from "../../data/types";
import type { Window } from "../draw/frame";
import { center } from "../input/hits";
import { rowsBetween } from "../layout/rows";
import { size } from "../local";
import type { Wish } from "./loader";

/** Rows so far beyond the edges are asked for, too. CSS pixels. */
const NEAR = 200;

/** The tracks of a report whose rows are on the screen, or not more than `near` CSS pixels beyond its edges. */
function tracksOf(windows: readonly Window[], report: number, near: number): Map<number, Track> {
  const rows = windows.flatMap((window) => rowsBetween(window.rows, window.top - window.shift - near, window.bottom - window.shift + near));
  return new Map(rows.filter((row) => row.report === report).flatMap((row) => row.tracks.map((track) => [track.track, track] as const)));
}

export function wishesFor(windows: readonly Window[]): Wish[] {
  const width = Math.round(size.value.width * size.value.ratio);
  if (width <= 0) return [];
  const { begin, end } = view.value;
  const at = center();
  return (meta.value?.reports ?? []).flatMap(({ report, generation, ...whole }) => {
    const offset = offsets.value[report] ?? 0;
    const tracks = tracksOf(windows, report, 0);
    const near = tracksOf(windows, report, NEAR);
    for (const track of tracks.keys()) near.delete(track);
    if (tracks.size + near.size === 0) return [];
    const wish: Wish = {
      report, view: { begin: begin - offset, end: end - offset }, at: at - offset, whole: { begin: whole.begin, end: whole.end }, width, generation,
      tracks: [...tracks.values()], near: [...near.values()],
    };
    return [wish];
  });
}
