/** The longest visible events of a track, for screen readers and arrow keys. */
import type { Span } from "../../data/source";
import type { Located } from "../../data/types";
import { firstAfter } from "../draw/pack";
import type { Row } from "../layout/rows";
import { located } from "./located";
import { type Store, pieces } from "./tiles";

export interface Listed {
  event: Located;
  /** Number of slices that it stands for. */
  slices: number;
}

/** At most `most`, in order of time; `span` is on the report's own clock. */
export function biggest(store: Store, row: Row, span: Span, most = 60): Listed[] {
  const track = row.node.track;
  if (track === undefined) return [];
  // What goes on from one piece of the view into the next is in the answers of both.
  const all = new Map<string, Listed>();
  for (const piece of pieces(store.get(row.report, track.track), span.begin, span.end)) {
    for (const [lane, run] of piece.tile.lanes.entries()) {
      if (run === undefined) continue;
      const { start, slices } = run.rects;
      for (let index = firstAfter(run, piece.begin); index < run.first + run.count && start[index]! < piece.end; index += 1) {
        const key = `${lane}/${start[index]}`;
        if (!all.has(key)) all.set(key, { event: located(row, track, lane, run, index), slices: slices[index]! });
      }
    }
  }
  return [...all.values()]
    .sort((a, b) => b.event.duration - a.event.duration)
    .slice(0, most)
    .sort((a, b) => a.event.start - b.event.start || a.event.lane - b.event.lane);
}
