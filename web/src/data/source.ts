/** The source of the page's data: a server on this machine, or the page itself (`--export`). */
import type {
  Alike, Difference, EventDetails, EventRef, Findings, Flame, Located, Meta, Plot, Rects, SearchAnswer, Selected, SourceLines, StatInfo, Steps, Table,
  TrackNode, ViewportQuery,
} from "./types";

export interface Span {
  begin: number;
  end: number;
}

/** Every method rejects with an Error whose message can be shown; `signal` gives an answer up that nobody waits for any more. */
export interface Source {
  meta(): Promise<Meta>;
  tracks(report: number): Promise<TrackNode[]>;
  viewport(query: ViewportQuery, signal?: AbortSignal): Promise<Rects>;
  plots(query: ViewportQuery, signal?: AbortSignal): Promise<Plot[]>;
  event(of: EventRef): Promise<EventDetails>;
  alike(of: EventRef): Promise<Alike>;
  /** `text` is a regular expression where `regex`; events around `from`, `limit` before and after. */
  search(report: number, text: string, regex: boolean, from: number, limit: number, signal?: AbortSignal): Promise<SearchAnswer>;
  findings(report: number): Promise<Findings>;
  statList(report: number): Promise<StatInfo[]>;
  stat(report: number, name: string, span?: Span): Promise<Table>;
  selected(report: number, span: Span, tracks: number[], signal?: AbortSignal): Promise<Selected>;
  flame(report: number, kind: Flame["kind"], span?: Span): Promise<Flame>;
  /** `file`: one that samples were in; empty: the hottest one. */
  source(report: number, file: string, span?: Span): Promise<SourceLines>;
  /** `name`: what the ranges are called that are steps; without it, what most call them. */
  steps(report: number, name?: string): Promise<Steps>;
  diagnostics(report: number): Promise<Table>;
  sql(report: number, text: string): Promise<Table>;
  difference(): Promise<Difference | null>;
  /** Resolves when a report has a newer generation than `known` (live capture); never rejects for a slow answer. */
  changed(known: number[], signal: AbortSignal): Promise<number[]>;
  /** The first event of a table at or after a time, for links from rows without ids. */
  at(report: number, table: string, time: number): Promise<Located | null>;
}
