/** Shows a selection made anywhere: opens the groups that hide it, and scrolls to it. */
import { effect, untracked } from "@preact/signals";
import { hidden, selected, toggled, trees } from "../../app/state";
import type { Located } from "../../data/types";
import { type Row, isOpen } from "../layout/rows";
import { pathTo } from "../layout/tree";
import { focusedRow, ownTrees, places, scroll } from "../local";
import { roomOfRows, scrollBy } from "./pointer";

export function follow(): () => void {
  // Once for each event: trees come anew while a capture runs, and somebody may have scrolled on meanwhile.
  let brought: Located | null = null;
  return effect(() => {
    const event = selected.value;
    const isThere = event !== null && trees.value[event.report] !== undefined;
    if (event === brought || (event !== null && !isThere)) return;
    brought = event;
    if (event !== null) untracked(() => bring(event));
  });
}

/** Opens what is closed above a track, and shows it again where it was hidden. */
export function open(event: Pick<Located, "report" | "track">): void {
  const path = pathTo(ownTrees.value[event.report] ?? [], event.track);
  const closed = path.slice(0, -1).filter((node) => !isOpen(node, toggled.value));
  if (closed.length > 0) {
    const next = new Set(toggled.value);
    for (const node of closed) if (!next.delete(node.id)) next.add(node.id);
    toggled.value = next;
  }
  if (path.some((node) => hidden.value.has(node.id))) hidden.value = new Set([...hidden.value].filter((id) => !path.some((node) => node.id === id)));
}

/** Scrolls no further than it takes to see a row, where it is out of sight. */
export function bringRow(row: Pick<Row, "y" | "height" | "pinned">): void {
  if (row.pinned) return;
  const room = roomOfRows();
  const top = row.y - scroll.value;
  const beyond = top + Math.min(row.height, room) - room;
  if (top < 0) scrollBy(top);
  else if (beyond > 0) scrollBy(beyond);
}

function bring(event: Located): void {
  const before = places.value.of(event.report, event.track);
  if (before === null || before.folded) open(event);
  const place = places.value.at(event);
  if (place === null || place.row.pinned) return;
  focusedRow.value = place.row.key;
  const room = roomOfRows();
  const top = place.top - scroll.value;
  if (top < 0 || top + place.height > room) scrollBy(place.top - room * 0.4 - scroll.value);
}
