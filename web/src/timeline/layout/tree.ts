/** Arranges the tree of tracks: filtered by name, grouped by device or rank, in another order, without hidden tracks. */
import type { GroupBy } from "../../app/state";
import type { TrackNode } from "../../data/types";

export interface Wishes {
  filter: string;
  groupBy: GroupBy;
  hidden: ReadonlySet<string>;
  order: Readonly<Record<string, readonly string[]>>;
}

/** What a filter matches: part of the name or the grey words; between slashes a regular expression (a broken one is text). */
export function matcher(filter: string): ((node: TrackNode) => boolean) | null {
  const text = filter.trim();
  if (text === "") return null;
  const regex = /^\/(.+)\/?$/.exec(text);
  if (regex !== null) {
    try {
      const pattern = new RegExp(regex[1]!.replace(/\/$/, ""), "i");
      return (node) => pattern.test(node.name) || pattern.test(node.detail ?? "");
    } catch {
      // While it is being typed it is often not whole yet.
    }
  }
  const lower = text.toLowerCase();
  return (node) => node.name.toLowerCase().includes(lower) || (node.detail ?? "").toLowerCase().includes(lower);
}

/** Nodes that match with everything below them, and what leads to them. */
export function filtered(nodes: readonly TrackNode[], matches: (node: TrackNode) => boolean): TrackNode[] {
  return nodes.flatMap((node) => {
    if (matches(node)) return [node];
    const children = filtered(node.children, matches);
    return children.length > 0 ? [{ ...node, track: undefined, children, open: true }] : [];
  });
}

/** The order somebody dragged children into; those that came later stay where they were, at the end. */
export function arranged(nodes: readonly TrackNode[], wanted: readonly string[] | undefined): readonly TrackNode[] {
  if (wanted === undefined) return nodes;
  const place = new Map(wanted.map((id, index) => [id, index]));
  return [...nodes].sort((a, b) => (place.get(a.id) ?? wanted.length) - (place.get(b.id) ?? wanted.length));
}

/** Takes the topmost nodes that have a number of the kind out of the tree. */
function taken(nodes: readonly TrackNode[], key: "rank" | "device", out: Map<number, TrackNode[]>): TrackNode[] {
  return nodes.flatMap((node) => {
    const number = node[key];
    if (number !== undefined) {
      out.set(number, [...(out.get(number) ?? []), node]);
      return [];
    }
    const children = taken(node.children, key, out);
    return node.track !== undefined || children.length > 0 || node.children.length === 0 ? [{ ...node, children }] : [];
  });
}

const WORDS = { rank: "Rank", device: "GPU" } as const;

/** One group for each rank or device (what is alone needs none), then what has no number; the tree as it is where nothing has a number of that kind. */
export function grouped(nodes: readonly TrackNode[], by: GroupBy): readonly TrackNode[] {
  if (by === "host") return nodes;
  const groups = new Map<number, TrackNode[]>();
  const rest = taken(nodes, by, groups);
  const made = [...groups.entries()]
    .sort(([a], [b]) => a - b)
    .flatMap(([number, children]): TrackNode[] => (children.length === 1 ? children : [groupOf(by, number, children)]));
  return [...made, ...rest];
}

function groupOf(by: "rank" | "device", number: number, children: TrackNode[]): TrackNode {
  return { id: `${by}:${number}`, kind: by, name: `${WORDS[by]} ${number}`, children, open: true, [by]: number };
}

/** The tree to lay out. `root` names where the top nodes' order is kept. */
export function wished(nodes: readonly TrackNode[], wishes: Wishes, root: string): TrackNode[] {
  const matches = matcher(wishes.filter);
  let tree = grouped(nodes, wishes.groupBy);
  if (matches !== null) tree = filtered(tree, matches);
  const visit = (some: readonly TrackNode[], parent: string): TrackNode[] =>
    arranged(some, wishes.order[parent])
      .filter((node) => !wishes.hidden.has(node.id))
      .map((node) => (node.children.length === 0 ? node : { ...node, children: visit(node.children, node.id) }));
  return visit(tree, root);
}

/** The way from a top node to the one that holds a track; empty where none does. */
export function pathTo(nodes: readonly TrackNode[], track: number): TrackNode[] {
  for (const node of nodes) {
    if (node.track?.track === track) return [node];
    const below = pathTo(node.children, track);
    if (below.length > 0) return [node, ...below];
  }
  return [];
}
