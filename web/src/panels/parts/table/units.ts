/** Formats numbers with units for cells and fields; copied numbers keep every digit. */
import { count, moment, percent, size, time } from "../../../base/format";
import { visible } from "../../../base/text";
import type { Column } from "../../../data/types";

export { count, many, moment, percent, size, time } from "../../../base/format";

type Cell = string | number | boolean | null;

/** A value with its unit, as fields and counters have it. */
export function quantity(value: Cell, unit: string | null | undefined): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return visible(value);
  if (!Number.isFinite(value)) return String(value);
  if (unit === "ns") return time(value);
  if (unit === "B" || unit === "bytes") return size(value);
  if (unit === "B/s" || unit === "bytes/s") return `${size(value)}/s`;
  if (unit === "%") return percent(value / 100);
  return unit ? `${count(value)} ${unit}` : count(value);
}

/** A cell of a table: as `quantity`; of points in time seconds; numbers that name things (ids, processes) ungrouped. */
export function shown(value: Cell, column: Column): string {
  if (column.kind === "time" && typeof value === "number") return moment(value);
  if (typeof value === "number" && column.unit === null && names(column.name)) return String(value);
  return quantity(value, column.unit);
}

const NAMING = /(^|[ _])(id|pid|tid|process|thread|device|context|stream|rank|row|step|number|line|correlation)([ _(]|$)/i;

function names(column: string): boolean {
  return NAMING.test(column);
}
