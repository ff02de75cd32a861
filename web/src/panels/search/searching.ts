/** The search itself: which names are meant, how many events, and which is the next one, over all reports in order of time. */
import { select } from "../../app/actions";
import { found, meta, notice, offsets, selected, source, view } from "../../app/state";
import { signal } from "@preact/signals";
import type { Located, SearchAnswer } from "../../data/types";
import { expression } from "../parts/sorting";
import { count } from "../parts/units";

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
    found.value = { text, regex, total: 0, names: new Set(), current: null };
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
    found.value = { text, regex, total, names: new Set(names.value.map((one) => one.text)), current: null };
    notice.value = total === 0 ? `Nothing is called “${text}”.` : `${count(total)} hits.`;
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
    const time = from === null ? here() : axis(from);
    let next = neighbour(await events(state, time, control.signal), from, time, backward);
    if (next === null) {
      const whole = ends();
      const start = backward ? whole.end : whole.begin;
      next = neighbour(await events(state, start, control.signal), null, start, backward);
      if (next !== null) notice.value = backward ? "Went on from the end." : "Went on from the beginning.";
    }
    if (control.signal.aborted || next === null) return;
    found.value = { ...state, current: next };
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

async function events(state: { text: string; regex: boolean }, time: number, control: AbortSignal): Promise<Located[]> {
  return (await asked(state.text, state.regex, time, AROUND, control)).flatMap((answer) => answer.events);
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
