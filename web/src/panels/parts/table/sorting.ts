/** Computes which rows of a table are visible, in which order: indices into the unchanged rows. */
import type { Table } from "../../../data/types";

type Cell = Table["rows"][number][number];

export interface Order {
  column: number;
  down: boolean;
}

/** Made when something is sorted: it takes longer than all else that the page does before it is seen. */
let collator: Intl.Collator | undefined;

/** What a click on a column's head leads to: numbers from the greatest, text from A, then the other way, then as it came. */
export function turned(order: Order | null, column: number, numeric: boolean): Order | null {
  if (order?.column !== column) return { column, down: numeric };
  return order.down === numeric ? { column, down: !numeric } : null;
}

/** Return the rows that the words (all of them) or the `/regular expression/` are in, sorted; rows without a value come last either way. */
export function arranged(rows: Table["rows"], order: Order | null, filter: string): number[] {
  const test = matcher(filter);
  const kept: number[] = [];
  for (let i = 0; i < rows.length; i++) if (test === null || test(rows[i]!)) kept.push(i);
  if (order === null) return kept;
  const { column, down } = order;
  const sign = down ? -1 : 1;
  return kept.sort((a, b) => {
    const [first, second] = [rows[a]![column] ?? null, rows[b]![column] ?? null];
    if (first === null || second === null) return first === second ? a - b : first === null ? 1 : -1;
    return sign * compared(first, second) || a - b;
  });
}

/** Return what tells whether a row is kept; null where all are. A pattern that cannot be read is taken as words. */
export function matcher(filter: string): ((row: readonly Cell[]) => boolean) | null {
  const text = filter.trim();
  if (text === "") return null;
  const pattern = text.length > 2 && text.startsWith("/") && text.endsWith("/") ? expression(text.slice(1, -1)) : null;
  if (pattern !== null) return (row) => row.some((cell) => cell !== null && pattern.test(String(cell)));
  const words = text.toLowerCase().split(/\s+/);
  return (row) => {
    const cells = row.map((cell) => (cell === null ? "" : String(cell).toLowerCase()));
    return words.every((word) => cells.some((cell) => cell.includes(word)));
  };
}

/** Return the regular expression, or null where it is none. */
export function expression(text: string): RegExp | null {
  try {
    return new RegExp(text, "i");
  } catch {
    return null;
  }
}

function compared(a: NonNullable<Cell>, b: NonNullable<Cell>): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "boolean" && typeof b === "boolean") return Number(a) - Number(b);
  collator ??= new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  return collator.compare(String(a), String(b));
}
