/** Turns trees into rows: the place of each in CSS pixels from the top of its zone. */
import type { Track, TrackNode } from "../../data/types";

export type RowStyle = "group" | "slices" | "marks" | "states" | "samples" | "counter";

export interface Row {
  /** Unique among rows: a pinned node is there twice. */
  key: string;
  id: string;
  node: TrackNode;
  /** Where the node's order among its sisters is kept. */
  parent: string;
  report: number;
  process: number;
  depth: number;
  style: RowStyle;
  y: number;
  height: number;
  laneHeight: number;
  /** Lanes that are drawn, and how many the limit leaves out. */
  lanes: number;
  more: number;
  /** null: nothing below it. */
  open: boolean | null;
  /** What it draws: its own track, or, closed, all below it. */
  tracks: readonly Track[];
  pinned: boolean;
  /** Place among its sisters, for screen readers. */
  place: number;
  sisters: number;
}

export interface Zone {
  rows: Row[];
  height: number;
}

export interface Layout {
  pinned: Zone;
  main: Zone;
}

/** Lanes of a row before somebody wants all of them, and then. */
export const FEW_LANES = 8;
export const ALL_LANES = 96;
const LANE = 17;
const PAD = 3;
const LEAST = 20;
const COUNTER = 42;
/** Tracks that a closed group sums up at most: it is a hint of where something runs, not a plot. */
const SUMMED = 32;

/** The entry of `toggled` that says that all lanes of a row are wanted. */
export function lanesKey(id: string): string {
  return `${id}#lanes`;
}

export function isOpen(node: TrackNode, toggled: ReadonlySet<string>): boolean {
  return (node.open ?? false) !== toggled.has(node.id);
}

/** All tracks at and below a node, in order. */
export function tracksOf(node: TrackNode): Track[] {
  return [...(node.track === undefined ? [] : [node.track]), ...node.children.flatMap(tracksOf)];
}

function summed(node: TrackNode): Track[] {
  const all = tracksOf(node).filter((one) => one.kind === "slices");
  // Of a GPU only what ran on it counts: a projected range is open while nothing runs.
  const work = all.filter((one) => ["kernels", "memcpys", "memsets", "graphs"].includes(one.layer));
  return (work.length > 0 ? work : all).slice(0, SUMMED);
}

function shape(node: TrackNode, all: boolean): Pick<Row, "style" | "height" | "laneHeight" | "lanes" | "more"> {
  const track = node.track;
  if (track === undefined) return { style: "group", height: LEAST, laneHeight: 8, lanes: 1, more: 0 };
  if (track.kind === "counter") return { style: "counter", height: COUNTER, laneHeight: COUNTER - 6, lanes: 1, more: 0 };
  if (track.kind === "slices" || (track.kind === "marks" && track.lanes > 1)) {
    const lanes = Math.min(Math.max(track.lanes, 1), all ? ALL_LANES : FEW_LANES);
    const height = Math.max(lanes * LANE + 2 * PAD - 1, LEAST);
    return { style: track.kind, height, laneHeight: LANE, lanes, more: Math.max(track.lanes, 1) - lanes };
  }
  return { style: track.kind, height: LEAST, laneHeight: track.kind === "states" ? 8 : LEAST - 2 * PAD, lanes: 1, more: 0 };
}

interface Place {
  parent: string;
  report: number;
  process: number;
  depth: number;
  pinned: boolean;
}

/** The rows of some sisters and of what is open below them, after those that the zone has. */
function lay(nodes: readonly TrackNode[], at: Place, toggled: ReadonlySet<string>, zone: Zone): void {
  nodes.forEach((node, index) => {
    const process = node.process ?? at.process;
    const open = node.children.length > 0 ? isOpen(node, toggled) : null;
    const form = shape(node, toggled.has(lanesKey(node.id)));
    const tracks = node.track !== undefined ? [node.track] : open === false ? summed(node) : [];
    zone.rows.push({
      key: at.pinned ? `pin ${node.id}` : node.id, id: node.id, node, parent: at.parent, report: at.report, process, depth: at.depth, y: zone.height, open,
      tracks, pinned: at.pinned, place: index + 1, sisters: nodes.length, ...form,
    });
    zone.height += form.height;
    if (open === true) lay(node.children, { ...at, parent: node.id, process, depth: at.depth + 1 }, toggled, zone);
  });
}

function findNode(nodes: readonly TrackNode[], id: string, process: number): { node: TrackNode; process: number } | null {
  for (const node of nodes) {
    const here = node.process ?? process;
    if (node.id === id) return { node, process: here };
    const below = findNode(node.children, id, here);
    if (below !== null) return below;
  }
  return null;
}

/** Where the order of a report's top nodes is kept. */
export function rootKey(report: number): string {
  return `report:${report}`;
}

/** Lays out the trees of all reports, one under the other, and the pinned nodes in a separate zone. Ids of reports must differ: see `own`. */
export function layOut(trees: readonly (readonly TrackNode[])[], toggled: ReadonlySet<string>, pinned: readonly string[]): Layout {
  const main: Zone = { rows: [], height: 0 };
  const top: Zone = { rows: [], height: 0 };
  trees.forEach((tree, report) => lay(tree, { parent: rootKey(report), report, process: 0, depth: 0, pinned: false }, toggled, main));
  for (const id of pinned) {
    for (const [report, tree] of trees.entries()) {
      const found = findNode(tree, id, 0);
      if (found !== null) lay([found.node], { parent: "", report, process: found.process, depth: 0, pinned: true }, toggled, top);
    }
  }
  return { pinned: top, main };
}

/** Ids of two reports may be equal: from the second on they begin with its number. */
export function own(tree: readonly TrackNode[], report: number): TrackNode[] {
  if (report === 0) return [...tree];
  return tree.map((node) => ({ ...node, id: `${report}|${node.id}`, children: own(node.children, report) }));
}

/** The first row of a zone that ends below `y`. */
export function firstRow(rows: readonly Row[], y: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle]!.y + rows[middle]!.height > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The rows that are seen between two heights of a zone. */
export function rowsBetween(rows: readonly Row[], top: number, bottom: number): Row[] {
  const seen: Row[] = [];
  for (let index = firstRow(rows, top); index < rows.length && rows[index]!.y < bottom; index += 1) seen.push(rows[index]!);
  return seen;
}

/** Top of a lane within its row. */
export function laneTop(row: Row, lane: number): number {
  return Math.floor((row.height - row.lanes * row.laneHeight + 1) / 2) + lane * row.laneHeight;
}
