/** Reads rows of SQL: the tables of a report, and the time of a row without a link. */
import type { Table } from "../../data/types";

export interface Listed {
  name: string;
  columns: { name: string; type: string }[];
}

/** Group rows of `LISTING` by table. */
export function listed(table: Table): Listed[] {
  const all = new Map<string, Listed>();
  for (const [name, column, type] of table.rows) {
    const key = String(name);
    let one = all.get(key);
    if (one === undefined) all.set(key, (one = { name: key, columns: [] }));
    one.columns.push({ name: String(column), type: String(type) });
  }
  return [...all.values()];
}

/** Return the time of a row by its columns `start` and `end` (or a duration); null where it has none. */
export function spanOf(table: Table, row: number): { start: number; end: number } | null {
  const cells = table.rows[row];
  if (cells === undefined) return null;
  const value = (names: RegExp) => {
    const at = table.columns.findIndex((column) => column.kind !== "text" && names.test(column.name));
    return at < 0 || typeof cells[at] !== "number" ? null : cells[at];
  };
  const start = value(/^(start|begin|time|ts)( \(ns\))?$/i);
  if (start === null) return null;
  const end = value(/^end( \(ns\))?$/i);
  const duration = value(/^(duration|dur)( \(ns\))?$/i);
  return { start, end: end ?? start + (duration ?? 0) };
}

/** Keep the last questions, newest first, none twice. */
export function remembered(history: readonly string[], text: string, most = 20): string[] {
  return [text, ...history.filter((one) => one !== text)].slice(0, most);
}
