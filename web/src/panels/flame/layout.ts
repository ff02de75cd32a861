/** Places the boxes of a flame graph: ancestors of the zoomed node in full width, below it children by share, widest first. */
import type { FlameNode } from "../../data/types";

export interface Box {
  node: FlameNode;
  depth: number;
  x: number;
  width: number;
}

/** Who holds whom: made once per graph, for zooming and for moving by keys. */
export type Parents = ReadonlyMap<FlameNode, FlameNode>;

/** Return the parent of each node but the root. */
export function parentsOf(root: FlameNode): Parents {
  const parents = new Map<FlameNode, FlameNode>();
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const child of node.children) {
      parents.set(child, node);
      open.push(child);
    }
  }
  return parents;
}

/** Return the nodes from the root to this one, both with it. */
export function pathTo(node: FlameNode, parents: Parents): FlameNode[] {
  const path = [node];
  for (let up = parents.get(node); up !== undefined; up = parents.get(up)) path.unshift(up);
  return path;
}

const NEARLY_ALL = 0.95;

/** The way from a node down to where it parts: of each node on it, nearly all is one child that holds others. Stacks begin so. */
export function trunk(root: FlameNode): FlameNode[] {
  const path = [root];
  for (let node = root; ; path.push(node)) {
    const most = ordered(node)[0];
    if (most === undefined || most.children.length === 0 || most.value < node.value * NEARLY_ALL) return path;
    node = most;
  }
}

/** Children with the greatest first; of equal ones by name, so that pictures keep still. */
export function ordered(node: FlameNode): FlameNode[] {
  return [...node.children].sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));
}

/** Lay out `path` (its last one fills the width) and what is below it; boxes narrower than `least` are left out with all they hold. */
export function icicle(path: readonly FlameNode[], width: number, least: number): Box[] {
  const boxes: Box[] = path.map((node, depth) => ({ node, depth, x: 0, width }));
  const zoomed = boxes.at(-1);
  if (zoomed === undefined || zoomed.node.value <= 0) return boxes;
  const scale = width / zoomed.node.value;
  const open: Box[] = [zoomed];
  for (let box = open.pop(); box !== undefined; box = open.pop()) {
    let x = box.x;
    for (const child of ordered(box.node)) {
      const wide = child.value * scale;
      if (wide < least) break; // the rest is smaller still
      const inner = { node: child, depth: box.depth + 1, x, width: wide };
      boxes.push(inner);
      open.push(inner);
      x += wide;
    }
  }
  return boxes;
}

/** Return how many levels the boxes have. */
export function levels(boxes: readonly Box[]): number {
  return boxes.reduce((most, box) => Math.max(most, box.depth + 1), 0);
}

/** Where a key leads from a node: along its siblings, to its parent, to its greatest child; null where there is nothing. */
export function neighbour(node: FlameNode, key: string, parents: Parents): FlameNode | null {
  const parent = parents.get(node);
  if (key === "ArrowUp") return parent ?? null;
  if (key === "ArrowDown") return ordered(node)[0] ?? null;
  if (parent === undefined || (key !== "ArrowLeft" && key !== "ArrowRight")) return null;
  const siblings = ordered(parent);
  return siblings[siblings.indexOf(node) + (key === "ArrowRight" ? 1 : -1)] ?? null;
}
