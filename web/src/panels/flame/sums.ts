/** Sums a flame graph by name, recursion counted once, and the matches of a search. */
import type { FlameNode } from "../../data/types";

export interface NameSum {
  name: string;
  self: number;
  total: number;
}

/** Return every name with its own and its whole value; a name that calls itself counts once. */
export function byName(root: FlameNode): NameSum[] {
  const sums = new Map<string, NameSum>();
  const inside = new Map<string, number>();
  const open: { node: FlameNode; leave: boolean }[] = root.children.map((node) => ({ node, leave: false }));
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const { node, leave } = one;
    const deep = inside.get(node.name) ?? 0;
    if (leave) {
      inside.set(node.name, deep - 1);
      continue;
    }
    let sum = sums.get(node.name);
    if (sum === undefined) sums.set(node.name, (sum = { name: node.name, self: 0, total: 0 }));
    sum.self += node.self;
    if (deep === 0) sum.total += node.value;
    inside.set(node.name, deep + 1);
    open.push({ node, leave: true });
    for (const child of node.children) open.push({ node: child, leave: false });
  }
  return [...sums.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}

export interface Matched {
  nodes: ReadonlySet<FlameNode>;
  /** Value of all that match, what is in a match counted once. */
  value: number;
}

/** Return the nodes whose names pass. */
export function matched(root: FlameNode, test: (name: string) => boolean): Matched {
  const nodes = new Set<FlameNode>();
  let value = 0;
  const open: { node: FlameNode; within: boolean }[] = [{ node: root, within: false }];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const hit = one.node !== root && test(one.node.name);
    if (hit) {
      nodes.add(one.node);
      if (!one.within) value += one.node.value;
    }
    for (const child of one.node.children) open.push({ node: child, within: one.within || hit });
  }
  return { nodes, value };
}
