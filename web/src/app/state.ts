/** The state of the page as signals: every part reads and writes here only; `url.ts` keeps the shareable part in the address. */
import { signal } from "@preact/signals";
import type { Source, Span } from "../data/source";
import type { Difference, EventDetails, Located, Meta, TrackNode } from "../data/types";

export type ColorBy = "name" | "category" | "correlation";
export type Theme = "dark" | "light" | "system";
export type GroupBy = "host" | "device" | "rank";

export interface Mark {
  time: number;
  label: string;
}

/** A search as it stands: `position` counts from 0 in `total` hits; `names` are lit on the timeline. */
export interface Found {
  text: string;
  regex: boolean;
  total: number;
  names: Set<string>;
  current: Located | null;
  /** The place of `current` among all hits, the first is 1; null: not known. */
  place: number | null;
}

export const source = signal<Source | null>(null);
export const meta = signal<Meta | null>(null);
/** One tree for each report. */
export const trees = signal<TrackNode[][]>([]);
/** What of time is seen, ns from the origin of report 0. */
export const view = signal<Span>({ begin: 0, end: 1 });
/** What is added to a time of report i to be on the axis. */
export const offsets = signal<number[]>([0]);
export const selected = signal<Located | null>(null);
export const details = signal<EventDetails | null>(null);
/** Ranges of time that were dragged: at most two, the second is compared with the first. */
export const ranges = signal<Span[]>([]);
export const hovered = signal<Located | null>(null);
export const marks = signal<Mark[]>([]);
export const found = signal<Found | null>(null);
export const filter = signal<string>("");
/** Ids of nodes that differ from how they open at first; pinned and hidden ones; the order where somebody moved them. */
export const toggled = signal<ReadonlySet<string>>(new Set());
export const pinned = signal<readonly string[]>([]);
export const hidden = signal<ReadonlySet<string>>(new Set());
export const order = signal<Readonly<Record<string, readonly string[]>>>({});
export const groupBy = signal<GroupBy>("host");
export const colorBy = signal<ColorBy>("name");
export const theme = signal<Theme>("system");
/** The open panel below the timeline ("findings", "stats", …), null: none. */
export const panel = signal<string | null>("findings");
export const help = signal<boolean>(false);
export const difference = signal<Difference | null>(null);
/** One line for people and screen readers: what went wrong, what was found. */
export const notice = signal<string>("");
