/** Builds the page: opens the reports, keeps live reports fresh, and shows an error if that fails. */
import { batch, signal } from "@preact/signals";
import { many } from "../base/format";
import { kept } from "../data/kept";
import type { Source } from "../data/source";
import type { Meta, TrackNode } from "../data/types";
import { everything, show, showAll } from "./actions";
import { difference, meta, notice, offsets, source, trees, view } from "./state";

export type Stage = { is: "loading" } | { is: "ready" } | { is: "failed"; why: string };

export const stage = signal<Stage>({ is: "loading" });
/** Is the last news of a running capture older than it should be? */
export const stale = signal(false);
/** Where the reports lie on the axis until somebody moves one. */
export const usual = signal<number[]>([]);

/** Opens the reports of a source; rejects never, `stage` says how it went. `placed` is called when there is something to look at. */
export async function boot(from: Source, placed: () => void): Promise<void> {
  stage.value = { is: "loading" };
  const remembering = kept(from);
  source.value = remembering;
  try {
    // There is always a first report: its tracks need not wait until the others are known.
    const found = await load(remembering, remembering.tracks(0).catch(() => null));
    // At once, so that the first requests are for the visible place.
    batch(() => {
      take(found);
      usual.value = offsets.value = together(found.opened);
      showAll();
      stage.value = { is: "ready" };
      placed();
    });
    if (found.opened.reports.length > 1) void compare(remembering);
    if (found.opened.reports.some((one) => one.live)) void follow(remembering);
  } catch (error) {
    stage.value = { is: "failed", why: error instanceof Error ? error.message : String(error) };
  }
}

interface Found {
  opened: Meta;
  tracks: TrackNode[][];
}

async function load(from: Source, first?: Promise<TrackNode[] | null>): Promise<Found> {
  const opened = await from.meta();
  return { opened, tracks: await Promise.all(opened.reports.map(async (one) => (one.report === 0 && (await first)) || from.tracks(one.report))) };
}

function take({ opened, tracks }: Found): void {
  batch(() => {
    meta.value = opened;
    trees.value = tracks;
  });
}

/** Reports beside each other begin together, until something better is known. */
function together(opened: Meta): number[] {
  const first = opened.reports[0]?.begin ?? 0;
  return opened.reports.map((one) => first - one.begin);
}

/** Lay two reports on each other by the first step or range that both have, where nobody moved yet. */
async function compare(from: Source): Promise<void> {
  const [before, seen] = [offsets.value, view.value];
  try {
    difference.value = await from.difference();
    const anchor = difference.value?.anchors[0];
    if (anchor === undefined || offsets.value !== before) return;
    usual.value = offsets.value = [before[0] ?? 0, (before[0] ?? 0) + anchor.a - anchor.b];
    if (view.value === seen) showAll();
  } catch (error) {
    notice.value = `The reports could not be compared: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Asks for news of a running capture, one question at a time, until all of it is finished. */
async function follow(from: Source & { forget(): void }): Promise<void> {
  const control = new AbortController();
  let pause = 1000;
  while (meta.value?.reports.some((one) => one.live || one.growing)) {
    const known = meta.value.reports.map((one) => one.generation);
    try {
      const now = await from.changed(known, control.signal);
      stale.value = false;
      pause = 1000;
      if (now.some((generation, i) => generation !== known[i])) await refresh(from);
      // A server that answers at once and has nothing new is not asked in a circle.
      else await sleep(250);
    } catch {
      stale.value = true;
      await sleep(pause);
      pause = Math.min(pause * 2, 30_000);
    }
  }
}

async function refresh(from: Source & { forget(): void }): Promise<void> {
  const before = everything();
  const seen = view.value;
  const wasLive = meta.value?.reports.some((one) => one.live);
  from.forget();
  const found = await load(from);
  const { opened } = found;
  take(found);
  const after = everything();
  if (after.end > before.end) {
    // A view of everything keeps showing everything, a view of the end stays at the end; other
    // views stay where they are.
    if (seen.begin <= before.begin && seen.end >= before.end) showAll();
    else if (seen.end >= before.end) show({ begin: seen.begin + after.end - before.end, end: seen.end + after.end - before.end });
  }
  if (wasLive && !opened.reports.some((one) => one.live)) notice.value = `The capture is finished: ${many(opened.reports.reduce((sum, one) => sum + one.events, 0), "event")}.`;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
