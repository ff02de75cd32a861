/** Pins, hides, opens and moves rows, for buttons and keys of the headers. */
import { hidden, order, pinned, toggled } from "../../app/state";
import { type Row, lanesKey } from "../layout/rows";
import { layout } from "../local";

function flipped(set: ReadonlySet<string>, id: string): Set<string> {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}

export function toggleOpen(row: Row): void {
  if (row.open !== null) toggled.value = flipped(toggled.value, row.id);
}

export function toggleLanes(row: Row): void {
  toggled.value = flipped(toggled.value, lanesKey(row.id));
}

export function togglePin(row: Row): void {
  pinned.value = pinned.value.includes(row.id) ? pinned.value.filter((id) => id !== row.id) : [...pinned.value, row.id];
}

export function hide(row: Row): void {
  hidden.value = new Set([...hidden.value, row.id]);
}

/** The sisters of a row as they are now. */
function sistersOf(row: Row): string[] {
  return layout.value.main.rows.filter((one) => one.parent === row.parent && one.report === row.report).map((one) => one.id);
}

/** Puts a row before or after one of its sisters; anything else is refused. */
export function place(row: Row, beside: Row, after: boolean): boolean {
  if (row.pinned && beside.pinned && row.parent === "" && beside.parent === "") {
    pinned.value = moved(pinned.value, row.id, beside.id, after);
    return true;
  }
  if (row.parent !== beside.parent || row.report !== beside.report || row.id === beside.id || row.pinned || beside.pinned) return false;
  order.value = { ...order.value, [row.parent]: moved(sistersOf(row), row.id, beside.id, after) };
  return true;
}

/** The list with one of its members put before or after another. */
export function moved(list: readonly string[], id: string, beside: string, after: boolean): string[] {
  const rest = list.filter((one) => one !== id);
  const at = rest.indexOf(beside);
  return [...rest.slice(0, at + (after ? 1 : 0)), id, ...rest.slice(at + (after ? 1 : 0))];
}

/** One place up or down among its sisters. */
export function nudge(row: Row, by: 1 | -1): boolean {
  const rows = row.pinned ? layout.value.pinned.rows : layout.value.main.rows;
  const sisters = rows.filter((one) => one.parent === row.parent && one.report === row.report);
  const next = sisters[sisters.findIndex((one) => one.id === row.id) + by];
  return next !== undefined && place(row, next, by > 0);
}
