/** Encodes the view in the address, for sharing and for back and forward; all of it behind #, which no server sees. */
import type { Span } from "../data/source";
import type { EventRef } from "../data/types";
import type { ColorBy, GroupBy, Mark } from "./state";

/** What an address says; what it does not say is as at first. */
export interface Place {
  view: Span | null;
  /** Where the reports lie on the axis; null: where they lie at first. */
  offsets: number[] | null;
  selected: EventRef | null;
  panel: string | null | undefined;
  search: { text: string; regex: boolean } | null;
  filter: string;
  groupBy: GroupBy;
  colorBy: ColorBy;
  ranges: Span[];
  marks: Mark[];
  toggled: string[];
  pinned: string[];
  hidden: string[];
  order: Record<string, string[]>;
}

/** Entries of a list that fit into an address that mail programs leave whole. */
const MOST = 200;

export function write(place: Place): string {
  const words = new URLSearchParams();
  const put = (key: string, value: string | null) => value !== null && value !== "" && words.append(key, value);
  put("t", place.view && span(place.view));
  put("at", place.offsets && place.offsets.map((one) => round(one)).join(","));
  put("e", place.selected && [place.selected.report, place.selected.table, place.selected.process, place.selected.row].join("."));
  if (place.panel !== undefined) put("p", place.panel ?? "-");
  if (place.search !== null) put(place.search.regex ? "sr" : "s", place.search.text.slice(0, 1000));
  put("f", place.filter.slice(0, 1000));
  put("g", place.groupBy === "host" ? null : place.groupBy);
  put("c", place.colorBy === "name" ? null : place.colorBy);
  for (const one of place.ranges) put("r", span(one));
  for (const one of place.marks.slice(0, MOST)) put("m", `${round(one.time)}~${one.label}`);
  for (const one of place.toggled.slice(0, MOST)) put("o", one);
  for (const one of place.pinned.slice(0, MOST)) put("pin", one);
  for (const one of place.hidden.slice(0, MOST)) put("h", one);
  for (const [parent, children] of Object.entries(place.order).slice(0, MOST)) put("in", JSON.stringify([parent, ...children.slice(0, MOST)]));
  // These two need no escape after #, and the address is easier to read without.
  return words.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%3A", ":");
}

/** Reads what `write` wrote; what it cannot read is as if it were not there. */
export function read(hash: string): Place {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const group = words.get("g");
  const color = words.get("c");
  const regex = words.get("sr");
  const text = regex ?? words.get("s");
  return {
    view: spanOf(words.get("t")),
    offsets: offsetsOf(words.get("at")),
    selected: reference(words.get("e")),
    panel: words.get("p") === null ? undefined : words.get("p") === "-" ? null : words.get("p"),
    search: text === null ? null : { text, regex: regex !== null },
    filter: words.get("f") ?? "",
    groupBy: group === "device" || group === "rank" ? group : "host",
    colorBy: color === "category" || color === "correlation" ? color : "name",
    ranges: words.getAll("r").map(spanOf).filter((one) => one !== null).slice(0, 2),
    marks: words.getAll("m").map(flagOf).filter((one) => one !== null),
    toggled: words.getAll("o"),
    pinned: words.getAll("pin"),
    hidden: words.getAll("h"),
    order: Object.fromEntries(words.getAll("in").map(orderOf).filter((one) => one !== null)),
  };
}

/** Is a view another place than one before, so that "back" should lead there? Small moves are not. */
export function elsewhere(now: Span, before: Span): boolean {
  const [wide, was] = [now.end - now.begin, before.end - before.begin];
  if (wide > was * 3 || was > wide * 3) return true;
  return Math.abs(now.begin + now.end - before.begin - before.end) / 2 > Math.max(wide, was) * 0.75;
}

function span(one: Span): string {
  // Of a narrow view parts of a nanosecond are kept, or it would jump when the page is loaded again.
  const parts = one.end - one.begin < 10_000 ? 100 : 1;
  return `${round(one.begin, parts)},${round(one.end, parts)}`;
}

function round(time: number, parts = 1): number {
  return Math.round(time * parts) / parts;
}

function spanOf(text: string | null): Span | null {
  const [begin, end] = (text ?? "").split(",").map(Number);
  return begin !== undefined && end !== undefined && Number.isFinite(begin) && Number.isFinite(end) && end > begin ? { begin, end } : null;
}

function offsetsOf(text: string | null): number[] | null {
  const list = (text ?? "").split(",").map((one) => (one === "" ? Number.NaN : Number(one)));
  return list.every(Number.isFinite) ? list : null;
}

function reference(text: string | null): EventRef | null {
  const match = /^(\d+)\.([\w-]+)\.(-?\d+)\.(\d+)$/.exec(text ?? "");
  return match === null ? null : { report: Number(match[1]), table: match[2]!, process: Number(match[3]), row: Number(match[4]) };
}

function flagOf(text: string): Mark | null {
  const match = /^(-?[\d.e+]+)~(.*)$/s.exec(text);
  const time = Number(match?.[1]);
  return match === null || !Number.isFinite(time) ? null : { time, label: match[2]!.slice(0, 100) };
}

function orderOf(text: string): [string, string[]] | null {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list) || !list.every((one) => typeof one === "string")) return null;
    const [parent, ...children] = list as string[];
    return parent === undefined ? null : [parent, children];
  } catch {
    return null;
  }
}
