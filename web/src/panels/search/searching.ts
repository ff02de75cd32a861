/** Searches all reports: the matching names, the number of events, and the next one in order of time. */
import { select } from "../../app/actions";
import { found, meta, notice, offsets, selected, source, view } from "../../app/state";
import { signal } from "@preact/signals";
import type { Located, SearchAnswer } from "../../data/types";
import { expression } from "../parts/table/sorting";
import { count } from "../parts/table/units";

/** Names with counts, of all reports together. */
export const names = signal<SearchAnswer["names"]>([]);
export const searching = signal(false);
const AROUND = 32;
let running: AbortController | null = null;

/** Search and say how many there are; nothing moves until `step`. An empty text ends the search. */
export async function search(text: string, regex: boolean): Promise<void> {
  running?.abort();
  running = null;
  names.value = [];
  searching.value = false;
  if (text === "" || source.value === null) {
    found.value = null;
    return;
  }
  if (regex && expression(text) === null) {
    found.value = { text, regex, total: 0, names: new Set(), current: null, place: null };
    notice.value = `“${text}” is no regular expression.`;
    return;
  }
  const control = (running = new AbortController());
  searching.value = true;
  try {
    const answers = await asked(text, regex, here(), 1, control.signal);
    if (control.signal.aborted) return;
    names.value = joined(answers);
    const total = answers.reduce((sum, answer) => sum + answer.total, 0);
    found.value = { text, regex, total, names: new Set(names.value.map((one) => one.text)), current: null, place: null };
    notice.value = total === 0 ? `Nothing is called “${text}”.` : total === 1 ? "1 hit." : `${count(total)} hits.`;
  } catch (error) {
    if (!control.signal.aborted) notice.value = `The search failed: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    if (running === control) searching.value = false;
  }
}

/** Select the next hit (or the one before), around the end from the other side. */
export async function step(backward: boolean): Promise<void> {
  const state = found.value;
  if (state === null || state.total === 0) return;
  running?.abort();
  const control = (running = new AbortController());
  try {
    const from = state.current ?? hereSelected();
    let time = from === null ? here() : axis(from);
    let hits = await around(state, time, control.signal);
    let next = neighbour(hits.events, from, time, backward);
    if (next === null) {
      const whole = ends();
      time = backward ? whole.end : whole.begin;
      hits = await around(state, time, control.signal);
      next = neighbour(hits.events, null, time, backward);
      if (next !== null) notice.value = backward ? "Continued from the end." : "Continued from the beginning.";
    }
    if (control.signal.aborted || next === null) return;
    found.value = { ...state, current: next, place: place(next, hits, time) };
    select(next, true);
  } catch (error) {
    if (!control.signal.aborted) notice.value = `The search failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Return the hit after (before) `from` in order of time, ties by place; without `from` the first at or after (last at or before) `time`. */
export function neighbour(hits: readonly Located[], from: Located | null, time: number, backward: boolean): Located | null {
  const sorted = [...hits].sort(ordered);
  if (from === null) return (backward ? sorted.findLast((one) => axis(one) <= time) : sorted.find((one) => axis(one) >= time)) ?? null;
  return (backward ? sorted.findLast((one) => ordered(one, from) < 0) : sorted.find((one) => ordered(one, from) > 0)) ?? null;
}

function ordered(a: Located, b: Located): number {
  return axis(a) - axis(b) || a.report - b.report || a.track - b.track || a.lane - b.lane || a.process - b.process || a.row - b.row;
}

function axis(event: Located): number {
  return event.start + (offsets.value[event.report] ?? 0);
}

/** Where a search starts: the left edge of what is seen. */
function here(): number {
  return view.value.begin;
}

/** What is selected, where it is in sight: the next hit is the one after it. */
function hereSelected(): Located | null {
  const event = selected.value;
  return event !== null && axis(event) >= view.value.begin && axis(event) <= view.value.end ? event : null;
}

function ends(): { begin: number; end: number } {
  const all = (meta.value?.reports ?? []).map((one) => ({ begin: one.begin + (offsets.value[one.report] ?? 0), end: one.end + (offsets.value[one.report] ?? 0) }));
  return { begin: Math.min(...all.map((one) => one.begin)), end: Math.max(...all.map((one) => one.end)) };
}

/** Hits around a time, and how many begin before it. */
interface Hits {
  events: Located[];
  before: number | null;
}

async function around(state: { text: string; regex: boolean }, time: number, control: AbortSignal): Promise<Hits> {
  const answers = await asked(state.text, state.regex, time, AROUND, control);
  const before = answers.reduce<number | null>((sum, one) => (sum === null || one.before === null ? null : sum + one.before), 0);
  return { events: answers.flatMap((answer) => answer.events), before };
}

/** The place of one of the hits around `time` among all: those told are next to each other. */
export function place(hit: Located, { events, before }: Hits, time: number): number | null {
  if (before === null) return null;
  const told = events.filter((one) => axis(one) < time).length;
  return before - told + events.filter((one) => ordered(one, hit) <= 0).length;
}

async function asked(text: string, regex: boolean, time: number, limit: number, control: AbortSignal): Promise<SearchAnswer[]> {
  const from = source.value!;
  const reports = meta.value?.reports ?? [];
  return Promise.all(reports.map((one) => from.search(one.report, text, regex, time - (offsets.value[one.report] ?? 0), limit, control)));
}

function joined(answers: readonly SearchAnswer[]): SearchAnswer["names"] {
  const all = new Map<string, SearchAnswer["names"][number]>();
  for (const one of answers.flatMap((answer) => answer.names)) {
    const key = `${one.layer}\n${one.text}`;
    const before = all.get(key);
    all.set(key, before ? { ...before, count: before.count + one.count } : one);
  }
  return [...all.values()].sort((a, b) => b.count - a.count);
}
