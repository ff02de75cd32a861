/** Tables as text that spreadsheets read: RFC 4180, whole values, units in the heads. */
import type { Column, Table } from "../../../data/types";

/** Return rows `order` of the table (all where it is not given) as CSV. */
export function csv(table: Pick<Table, "columns" | "rows">, order?: readonly number[]): string {
  const lines = [table.columns.map(headed).map(quoted).join(",")];
  const rows = order === undefined ? table.rows : order.map((i) => table.rows[i]!);
  for (const row of rows) lines.push(row.map((cell) => (cell === null ? "" : typeof cell === "string" ? quoted(harmless(cell)) : String(cell))).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

function headed(column: Column): string {
  return column.unit && !column.name.endsWith(`(${column.unit})`) ? `${column.name} (${column.unit})` : column.name;
}

/** A name that starts like a formula would be computed by the spreadsheet that it is pasted into. */
function harmless(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
