/** Finds the row in which the events of a track are drawn: its own, or, if that is closed, the row of its group. */
import type { Located } from "../../data/types";
import { type Layout, type Row, laneTop, tracksOf } from "./rows";

export interface Place {
  row: Row;
  /** The row is not the track's own, but of a closed group. */
  folded: boolean;
}

export class Places {
  readonly #rows = new Map<string, Place>();

  constructor(layout: Layout) {
    // Pinned rows come last: what is pinned is always seen, and arrows go there.
    for (const row of [...layout.main.rows, ...layout.pinned.rows]) {
      if (row.node.track !== undefined) this.#rows.set(`${row.report}/${row.node.track.track}`, { row, folded: false });
      if (row.open === false) {
        for (const track of row.node.children.flatMap(tracksOf)) {
          const key = `${row.report}/${track.track}`;
          if (!this.#rows.has(key)) this.#rows.set(key, { row, folded: true });
        }
      }
    }
  }

  of(report: number, track: number): Place | null {
    return this.#rows.get(`${report}/${track}`) ?? null;
  }

  /** Top and height of an event within its row's zone, CSS pixels; null where its track is not shown. */
  at(event: Pick<Located, "report" | "track" | "lane">): { row: Row; folded: boolean; top: number; height: number } | null {
    const place = this.of(event.report, event.track);
    if (place === null) return null;
    const { row } = place;
    const lane = place.folded ? 0 : Math.min(event.lane, row.lanes - 1);
    const height = row.style === "slices" ? row.laneHeight - 1 : row.laneHeight;
    return { ...place, top: row.y + laneTop(row, lane), height };
  }
}
