/** What the page has of each track: the finest answer around the view and the coarse one of everything, so that there is always something to draw. */
import type { Plot, Rects } from "../../data/types";
import type { Run } from "../draw/pack";

export interface Tile {
  begin: number;
  end: number;
  /** ns of the pixels that it was asked for; 0: nothing was joined, it serves for all. */
  grain: number;
  generation: number;
  /** Runs by lane. */
  lanes: (Run | undefined)[];
  plot: Plot | null;
}

export interface Tiles {
  fine: Tile | null;
  whole: Tile | null;
}

/** A stretch of a view and the tile to draw it from. */
export interface Piece {
  begin: number;
  end: number;
  tile: Tile;
}

export class Store {
  readonly #tracks = new Map<string, Tiles>();

  static key(report: number, track: number): string {
    return `${report}/${track}`;
  }

  get(report: number, track: number): Tiles | undefined {
    return this.#tracks.get(Store.key(report, track));
  }

  /** Takes an answer for some tracks; those without a lane in it have nothing there, which is an answer, too. `grain` is what was asked: a coarser answer is all there is to have. */
  addRects(rects: Rects, report: number, tracks: readonly number[], grain: number, generation: number, isWhole: boolean): void {
    const joined = rects.slices.some((count) => count > 1);
    const made = new Map<number, Tile>(
      tracks.map((track) => [
        track, { begin: rects.begin, end: rects.end, grain: joined ? grain : 0, generation, lanes: [], plot: null },
      ]),
    );
    for (const { track, lane, first, count } of rects.lanes) {
      const tile = made.get(track);
      if (tile !== undefined) tile.lanes[lane] = { rects, first, count };
    }
    for (const [track, tile] of made) this.#put(report, track, tile, isWhole);
  }

  addPlots(plots: readonly Plot[], span: { begin: number; end: number }, grain: number, report: number, tracks: readonly number[], generation: number, isWhole: boolean): void {
    const given = new Map(plots.map((plot) => [plot.track, plot]));
    for (const track of tracks) this.#put(report, track, { ...span, grain, generation, lanes: [], plot: given.get(track) ?? null }, isWhole);
  }

  #put(report: number, track: number, tile: Tile, isWhole: boolean): void {
    const key = Store.key(report, track);
    const tiles = this.#tracks.get(key) ?? { fine: null, whole: null };
    if (isWhole) tiles.whole = tile;
    tiles.fine = tile;
    this.#tracks.set(key, tiles);
  }

  clear(): void {
    this.#tracks.clear();
  }
}

/** Of what a view is drawn: the fine tile where it reaches, the whole one beside it. */
export function pieces(tiles: Tiles | undefined, begin: number, end: number): Piece[] {
  if (tiles === undefined) return [];
  const { fine, whole } = tiles;
  if (fine === null || whole === null || fine === whole) {
    const tile = fine ?? whole;
    return tile === null ? [] : [{ begin, end, tile }];
  }
  const left = Math.min(Math.max(fine.begin, begin), end);
  const right = Math.max(Math.min(fine.end, end), left);
  if (right <= left) return [{ begin, end, tile: whole }];
  const made: Piece[] = [];
  if (left > begin) made.push({ begin, end: left, tile: whole });
  made.push({ begin: left, end: right, tile: fine });
  if (right < end) made.push({ begin: right, end, tile: whole });
  return made;
}

/** Does a tile do for a view whose pixels are `grain` ns wide? */
export function serves(tile: Tile | null, begin: number, end: number, grain: number, generation: number): boolean {
  if (tile === null || tile.generation !== generation) return false;
  if (tile.begin > begin || tile.end < end) return false;
  return tile.grain <= grain * 1.6;
}

/** Is a tile so fine that it is slow to draw? Where nothing was joined there is no coarser one worth asking for, unless the view is much wider. */
export function wasteful(tile: Tile, begin: number, end: number, grain: number): boolean {
  return tile.grain * 8 < grain && (tile.end - tile.begin) / 16 < end - begin && tile.lanes.some((run) => run !== undefined && run.count > 4000);
}
