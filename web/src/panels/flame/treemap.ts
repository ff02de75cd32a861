/** Tree maps: every node a rectangle as large as its share, as square as can be (Bruls, Huizing, van Wijk), children within their parent. */
import type { FlameNode } from "../../data/types";
import { ordered, trunk } from "./layout";

export interface Tile {
  node: FlameNode;
  depth: number;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Has room for a title above its children. */
  titled: boolean;
}

const TITLE = 15;
const EDGE = 2;
const LEAST = 4;
const DEEPEST = 24;
/** Of a longer trunk only the end is drawn, or its titles would take all of the room. */
const TRUNK = 3;

/** Lay out a node and what is in it; what would be smaller than some pixels is left out. */
export function treemap(root: FlameNode, width: number, height: number): Tile[] {
  const tiles: Tile[] = [];
  const way = trunk(root);
  const open: Tile[] = [{ node: way.length > TRUNK ? way.at(-1)! : root, depth: 0, x: 0, y: 0, width, height, titled: height > TITLE * 2 && width > 40 }];
  for (let tile = open.pop(); tile !== undefined; tile = open.pop()) {
    tiles.push(tile);
    const title = tile.titled ? TITLE : EDGE;
    const inner = { x: tile.x + EDGE, y: tile.y + title, width: tile.width - 2 * EDGE, height: tile.height - title - EDGE };
    if (inner.width < LEAST || inner.height < LEAST || tile.depth >= DEEPEST || tile.node.value <= 0) continue;
    const children = ordered(tile.node).filter((child) => child.value > 0);
    // Own time keeps its part of the area free, so that areas can be compared over all levels.
    const own = Math.max(tile.node.value - children.reduce((sum, child) => sum + child.value, 0), 0);
    const places = squarified([...children.map((child) => child.value), own], inner);
    for (const [i, child] of children.entries()) {
      const place = places[i]!;
      if (place.width < LEAST || place.height < LEAST) continue;
      open.push({ node: child, depth: tile.depth + 1, ...place, titled: place.height > TITLE * 2 && place.width > 40 && child.children.length > 0 });
    }
  }
  return tiles;
}

export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Cut a rectangle into parts of these sizes (they need not add up to anything; greatest first looks best). */
export function squarified(values: readonly number[], within: Place): Place[] {
  const total = values.reduce((sum, value) => sum + value, 0);
  if (total <= 0) return values.map(() => ({ x: within.x, y: within.y, width: 0, height: 0 }));
  const scale = (within.width * within.height) / total;
  const areas = values.map((value) => value * scale);
  const places: Place[] = [];
  let left = { ...within };
  let from = 0;
  while (from < areas.length) {
    const side = Math.min(left.width, left.height);
    let to = from + 1;
    let sum = areas[from]!;
    let best = worst(areas, from, to, sum, side);
    while (to < areas.length) {
      const next = worst(areas, from, to + 1, sum + areas[to]!, side);
      if (next > best) break;
      best = next;
      sum += areas[to]!;
      to += 1;
    }
    const thick = side > 0 ? sum / side : 0;
    const flat = left.width >= left.height; // a column on the left, else a row on top
    let at = flat ? left.y : left.x;
    for (let i = from; i < to; i++) {
      const long = thick > 0 ? areas[i]! / thick : 0;
      places.push(flat ? { x: left.x, y: at, width: thick, height: long } : { x: at, y: left.y, width: long, height: thick });
      at += long;
    }
    left = flat
      ? { x: left.x + thick, y: left.y, width: Math.max(left.width - thick, 0), height: left.height }
      : { x: left.x, y: left.y + thick, width: left.width, height: Math.max(left.height - thick, 0) };
    from = to;
  }
  return places;
}

/** The worst ratio of sides in a strip. */
function worst(areas: readonly number[], from: number, to: number, sum: number, side: number): number {
  let [most, least] = [0, Infinity];
  for (let i = from; i < to; i++) {
    most = Math.max(most, areas[i]!);
    least = Math.min(least, areas[i]!);
  }
  if (sum <= 0 || side <= 0 || least <= 0) return Infinity;
  return Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
}
