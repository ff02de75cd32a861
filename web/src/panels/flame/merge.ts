/** Joins neighbouring boxes whose names differ in numbers only, and their children. */
import type { FlameNode } from "../../data/types";
import { family } from "../parts/family";

/** Return the same tree where no name is numbered, else a new one. */
export function merged(root: FlameNode): FlameNode {
  return numbered(root) ? joined(root.name, [root]) : root;
}

function numbered(root: FlameNode): boolean {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (family(node.name) !== node.name) return true;
    for (const child of node.children) open.push(child);
  }
  return false;
}

/** One node of several: their values add up, their children meet each other. */
function joined(name: string, nodes: readonly FlameNode[]): FlameNode {
  const groups = new Map<string, FlameNode[]>();
  let [value, self] = [0, 0];
  for (const node of nodes) {
    value += node.value;
    self += node.self;
    for (const child of node.children) {
      const key = family(child.name);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [child]);
      else group.push(child);
    }
  }
  const place = nodes[0]?.place;
  return { name, ...(place === undefined ? {} : { place }), value, self, children: [...groups].map(([key, group]) => joined(key, group)) };
}
