/** Events of one launch: loaded events with the same link number. */
import type { Located } from "../../data/types";
import { find } from "../layout/hit";
import type { Row } from "../layout/rows";
import { located } from "./located";
import type { Store } from "./tiles";

const NONE = 0xffffffff;
const MOST = 64;

/** The link number of an event; null where it has none or is not loaded. */
export function linkOf(store: Store, event: Located): number | null {
  for (const tile of store.get(event.report, event.track) ?? []) {
    const run = tile.lanes[event.lane];
    const index = run === undefined ? null : find(run, event.start, event.row);
    if (run !== undefined && index !== null && run.rects.link[index] !== NONE) return run.rects.link[index]!;
  }
  return null;
}

/** What is loaded of some rows with that number, the event itself left out. */
export function correlated(store: Store, rows: readonly Row[], event: Located): Located[] {
  const link = linkOf(store, event);
  if (link === null) return [];
  const same = new Map<string, Located>();
  for (const row of rows) {
    const track = row.node.track;
    if (track === undefined || track.report !== event.report) continue;
    for (const tile of store.get(row.report, track.track) ?? []) {
      for (const [lane, run] of tile.lanes.entries()) {
        if (run === undefined) continue;
        for (let index = run.first; index < run.first + run.count && same.size < MOST; index += 1) {
          if (run.rects.link[index] !== link || run.rects.slices[index] !== 1) continue;
          if (track.track === event.track && run.rects.row[index] === event.row) continue;
          same.set(`${track.track}/${run.rects.row[index]}`, located(row, track, lane, run, index));
        }
      }
    }
  }
  return [...same.values()];
}
