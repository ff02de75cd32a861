/** The loaded data of each track: recent answers around the view, and a coarse one of everything, so that there is always something to draw. */
import type { Plot, Rects } from "../../data/types";
import type { Run } from "../draw/pack";

export interface Tile {
  begin: number;
  end: number;
  /** ns of the pixels that it was asked for; 0: nothing was joined, it serves for all. */
  grain: number;
  generation: number;
  isWhole: boolean;
  /** Runs by lane. */
  lanes: (Run | undefined)[];
  plot: Plot | null;
  /** When somebody last needed it: a count that grows. */
  used: number;
}

/** The one to draw from first; where it does not reach the next one, and so on. */
export type Tiles = readonly Tile[];

/** A stretch of a view and the tile to draw it from. */
export interface Piece {
  begin: number;
  end: number;
  tile: Tile;
}

/** Rectangles joined over at most this many pixels are fine enough. */
export const SLACK = 1.6;
/** Tiles of a track that are kept beside the whole one: zooming back and forth needs no new answers. */
const KEPT = 10;
/** A gap that fills less than this part of the view gets no separate tile. */
const CRUMB = 1 / 200;

export class Store {
  readonly #tracks = new Map<string, Tile[]>();
  #uses = 0;

  static key(report: number, track: number): string {
    return `${report}/${track}`;
  }

  get(report: number, track: number): Tiles | undefined {
    return this.#tracks.get(Store.key(report, track));
  }

  /** Do the tiles that are fine enough cover a stretch of time? `slack`: pixels that their rectangles may be joined over. */
  has(report: number, track: number, begin: number, end: number, grain: number, generation: number, slack = SLACK): boolean {
    const able = (this.get(report, track) ?? []).filter((one) => isFine(one, grain, generation, slack) && one.begin <= end && one.end >= begin);
    const needed = cover(able, begin, end);
    if (needed === null) return false;
    this.#uses += 1;
    for (const one of needed) one.used = this.#uses;
    return true;
  }

  /** The same for what is to be drawn: puts them first, the one made for pixels most like these before the others. */
  prefer(report: number, track: number, begin: number, end: number, grain: number, generation: number): boolean {
    if (!this.has(report, track, begin, end, grain, generation)) return false;
    const tiles = this.get(report, track)!;
    const able = tiles.filter((one) => isFine(one, grain, generation)).sort((a, b) => unlike(a, grain) - unlike(b, grain));
    this.#tracks.set(Store.key(report, track), [...able, ...tiles.filter((one) => !isFine(one, grain, generation))]);
    return true;
  }

  /** Takes an answer for some tracks; those without a lane in it have nothing there, which is an answer, too. `grain` is what was asked: a coarser answer is all there is to have. */
  addRects(rects: Rects, report: number, tracks: readonly number[], grain: number, generation: number, isWhole: boolean): void {
    const joined = rects.slices.some((count) => count > 1);
    const { begin, end } = rects;
    const made = new Map<number, Tile>(tracks.map((track) => [track, { begin, end, grain: joined ? grain : 0, generation, isWhole, lanes: [], plot: null, used: 0 }]));
    for (const { track, lane, first, count } of rects.lanes) {
      const tile = made.get(track);
      if (tile !== undefined) tile.lanes[lane] = { rects, first, count };
    }
    for (const [track, tile] of made) this.#put(report, track, tile);
  }

  addPlots(plots: readonly Plot[], span: { begin: number; end: number }, report: number, tracks: readonly number[], grain: number, generation: number, isWhole: boolean): void {
    const given = new Map(plots.map((plot) => [plot.track, plot]));
    const { begin, end } = span;
    for (const track of tracks) this.#put(report, track, { begin, end, grain, generation, isWhole, lanes: [], plot: given.get(track) ?? null, used: 0 });
  }

  #put(report: number, track: number, tile: Tile): void {
    const key = Store.key(report, track);
    const others = (this.#tracks.get(key) ?? []).filter(
      (one) => (one.generation === tile.generation || one.isWhole) && !(one.isWhole && tile.isWhole) && !covers(tile, one),
    );
    this.#uses += 1;
    tile.used = this.#uses;
    // The whole one stays, however long ago it was needed.
    const rest = others.filter((one) => !one.isWhole).sort((a, b) => b.used - a.used);
    const unneeded = new Set(rest.slice(KEPT - 1));
    this.#tracks.set(key, [tile, ...others.filter((one) => !one.isWhole && !unneeded.has(one)), ...others.filter((one) => one.isWhole)]);
  }

  /** Forgets a track: its number means another one now. */
  drop(report: number, track: number): void {
    this.#tracks.delete(Store.key(report, track));
  }

  clear(): void {
    this.#tracks.clear();
  }
}

/** How many times wider or narrower than `grain` the pixels of a tile are. */
function unlike(tile: Tile, grain: number): number {
  return Math.min(Math.max(tile.grain / grain, grain / tile.grain), Number.MAX_VALUE);
}

/** Is there nothing in `b` that `a` does not say at least as finely? */
function covers(a: Tile, b: Tile): boolean {
  return !b.isWhole && a.begin <= b.begin && a.end >= b.end && a.grain <= b.grain;
}

/** Of what a view is drawn. */
export function pieces(tiles: Tiles | undefined, begin: number, end: number): Piece[] {
  const made: Piece[] = [];
  if (tiles !== undefined) fill(tiles, 0, begin, end, (end - begin) * CRUMB, made);
  return made;
}

function fill(tiles: Tiles, at: number, begin: number, end: number, least: number, into: Piece[]): void {
  const tile = tiles[at];
  if (tile === undefined || !(end > begin)) return;
  const left = Math.min(Math.max(tile.begin, begin), end);
  const right = Math.max(Math.min(tile.end, end), left);
  if (right - left < least && at + 1 < tiles.length) return fill(tiles, at + 1, begin, end, least, into);
  fill(tiles, at + 1, begin, left, least, into);
  if (right > left) into.push({ begin: left, end: right, tile });
  fill(tiles, at + 1, right, end, least, into);
}

/** The tile that a time is drawn from. */
export function tileAt(tiles: Tiles | undefined, time: number): Tile | undefined {
  return tiles?.find((one) => one.begin <= time && time <= one.end);
}

/** Does a tile do for a view whose pixels are `grain` ns wide? */
export function isFine(tile: Tile, grain: number, generation: number, slack = SLACK): boolean {
  return tile.generation === generation && tile.grain <= grain * slack;
}

/** The fewest tiles that each moment between two times is within one of; null: there are moments without. */
export function cover(tiles: Tiles, begin: number, end: number): Tiles | null {
  const needed: Tile[] = [];
  for (let reached = begin; ; ) {
    let furthest: Tile | null = null;
    for (const one of tiles) if (one.begin <= reached && one.end >= reached && one.end > (furthest?.end ?? -Infinity)) furthest = one;
    if (furthest === null || (needed.length > 0 && furthest.end <= reached)) return null;
    needed.push(furthest);
    reached = furthest.end;
    if (reached >= end) return needed;
  }
}
