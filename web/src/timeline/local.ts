/** State of the timeline alone: sizes, scroll, pointer, keyboard focus; and the rows, computed from the shared state. */
import { computed, signal } from "@preact/signals";
import { filter, groupBy, hidden, meta, order, pinned, toggled, trees } from "../app/state";
import { kept } from "../base/dom";
import type { Located, TrackNode } from "../data/types";
import { type Layout, layOut, own, rootKey } from "./layout/rows";
import { Places } from "./layout/places";
import { matcher, wished } from "./layout/tree";

export interface Size {
  width: number;
  height: number;
  ratio: number;
}

/** Of the canvas; CSS pixels and device pixels for one. */
export const size = signal<Size>({ width: 0, height: 0, ratio: 1 });
export const scroll = signal(0);
export const pinnedScroll = signal(0);
/** On the canvas, CSS pixels. */
export const pointer = signal<{ x: number; y: number } | null>(null);
/** Key of the row that the keyboard is on, and the event. */
export const focusedRow = signal<string | null>(null);
export const focusedEvent = signal<Located | null>(null);
/** The first answer was drawn: what is nice to have may be asked for now. */
export const answered = signal(false);
/** All that is seen was drawn, and the page had a moment for the rest. */
export const rested = signal(false);
/** How many answers came: what is made of them is made anew. */
export const arrivals = signal(0);
/** The strip above has what it shows. */
export const overviewed = signal(false);
export const headerWidth = signal(keptWidth());

function keptWidth(): number {
  const width = Number(kept.get("headers"));
  return width >= 120 && width <= 800 ? width : 260;
}

/** The trees with ids that are unique over reports; a report's name stands above where there are two. */
export const ownTrees = computed<TrackNode[][]>(() => {
  const all = trees.value.map(own);
  if (all.length < 2) return all;
  return all.map((tree, report): TrackNode[] => [
    { id: rootKey(report), kind: "report", name: `${"AB"[report] ?? report + 1}: ${meta.value?.reports[report]?.name ?? ""}`, children: tree, open: true },
  ]);
});

export const wishedTrees = computed<TrackNode[][]>(() => {
  const wishes = { filter: filter.value, groupBy: groupBy.value, hidden: hidden.value, order: order.value };
  return ownTrees.value.map((tree, report) => {
    if (ownTrees.value.length < 2) return wished(tree, wishes, rootKey(report));
    return tree.map((top) => ({ ...top, children: wished(top.children, wishes, top.id) }));
  });
});

export const layout = computed<Layout>(() => {
  // While a filter is on, what leads to a match is open, whatever was closed before.
  const closed = matcher(filter.value) === null ? toggled.value : new Set([...toggled.value].filter((id) => id.endsWith("#lanes")));
  return layOut(wishedTrees.value, closed, pinned.value);
});

/** Where a track's events are drawn. */
export const places = computed(() => new Places(layout.value));
