/** Computes widths of columns from the number of characters, so that a virtual table keeps still while it scrolls. */
import type { Column, Table } from "../../../data/types";
import { shown } from "./units";

const SAMPLE = 200;
const LEAST = 6;
const NARROW = 24;
const WIDE = 72;

/** Return the width of each column in `ch`, together `room` where there is text: it gives way where there is too little, and fills up where there is more. */
export function widths(columns: readonly Column[], rows: Table["rows"], room = 140): number[] {
  const step = Math.max(1, Math.floor(rows.length / SAMPLE));
  const wanted = columns.map((column, i) => {
    let most = column.name.length + 2;
    for (let row = 0; row < rows.length; row += step) most = Math.max(most, shown(rows[row]![i] ?? null, column).length);
    return Math.min(Math.max(most + 3, LEAST), WIDE);
  });
  const over = sum(wanted) - room;
  if (over <= 0) return spread(columns, wanted, -over);
  const spare = wanted.map((width, i) => (columns[i]!.kind === "text" ? Math.max(width - NARROW, 0) : 0));
  const all = sum(spare) || 1;
  return wanted.map((width, i) => Math.round(width - Math.min((over * spare[i]!) / all, spare[i]!)));
}

/** Text takes what is left, so that figures stand close to each other and to what they tell of. */
function spread(columns: readonly Column[], wanted: readonly number[], left: number): number[] {
  const text = sum(wanted.map((width, i) => (columns[i]!.kind === "text" ? width : 0)));
  return text === 0 ? [...wanted] : wanted.map((width, i) => (columns[i]!.kind === "text" ? Math.floor(width + (left * width) / text) : width));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
