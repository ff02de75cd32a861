/** Formats numbers for people: the fitting unit, few digits, groups of three. Copied numbers keep every digit. */

const TIMES: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
const SIZES: [number, string][] = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

/** A length of time: `1.23 ms`. */
export function time(ns: number): string {
  return scaled(ns, TIMES, "ns");
}

/** A size: `1.5 GiB`. */
export function size(bytes: number): string {
  return scaled(bytes, SIZES, "B");
}

/** A point in time, since the report's origin: seconds, with as many digits as there are. */
export function moment(ns: number): string {
  const seconds = ns / 1e9;
  return `${seconds.toFixed(Math.abs(ns) % 1000 === 0 ? 6 : 9)} s`;
}

/** A point in time with the digits that are seen in a view so wide. */
export function momentIn(ns: number, width: number): string {
  const places = Math.min(Math.max(Math.ceil(-Math.log10(Math.max(width, 1) / 1e9)) + 3, 1), 9);
  return `${(ns / 1e9).toFixed(places)} s`;
}

export function count(value: number): string {
  return Number.isInteger(value) ? grouped(value) : value.toLocaleString("en-US", { maximumFractionDigits: 3 });
}

/** A share from 0 to 1 as percent. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 0.095 ? value.toPrecision(1) : value.toFixed(Math.abs(value) < 9.95 ? 2 : 1)} %`;
}

/** "1 event", "2 events". */
export function many(value: number, one: string, more = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : more}`;
}

function scaled(value: number, units: [number, string][], smallest: string): string {
  const most = Math.abs(value);
  for (const [factor, unit] of units) {
    if (most >= factor && factor > 1) return `${digits(value / factor)} ${unit}`;
  }
  return `${Number.isInteger(value) ? value : digits(value)} ${smallest}`;
}

function digits(value: number): string {
  const most = Math.abs(value);
  return most >= 999.5 ? grouped(Math.round(value)) : value.toFixed(most < 9.995 ? 2 : most < 99.95 ? 1 : 0);
}

/** Not by `Intl`: its first word costs a page that opens more than all of its rows. */
function grouped(whole: number): string {
  return Math.abs(whole) < 1e21 ? String(whole).replace(/\B(?=(\d{3})+$)/g, ",") : whole.toLocaleString("en-US");
}
