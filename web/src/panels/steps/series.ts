/** Steps as columns: one process's steps with their parts stacked, or each process's times beside the others'. */
import type uPlot from "uplot";
import type { Steps } from "../../data/types";

export type Step = Steps["steps"][number];

/** Label of a process: its rank if it has one. */
export function owner(step: Pick<Step, "process" | "rank">): string {
  return step.rank === null ? `process ${step.process}` : `rank ${step.rank}`;
}

/** Return the processes that have steps, in order of rank, then number. */
export function owners(steps: readonly Step[]): { process: number; title: string }[] {
  const all = new Map<number, Step>();
  for (const step of steps) if (!all.has(step.process)) all.set(step.process, step);
  return [...all.values()].sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity) || a.process - b.process).map((step) => ({ process: step.process, title: owner(step) }));
}

/** Return the names of parts that ever take time, in the order in which the source names them; what no part covers is `other`. */
export function partsOf(steps: readonly Step[]): string[] {
  const order = Object.keys(steps[0]?.parts ?? {});
  const seen = new Set<string>();
  for (const step of steps) for (const [name, value] of Object.entries(step.parts)) if (value > 0) seen.add(name);
  const names = [...seen].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  if (names.length > 0 && !seen.has("other") && steps.some((step) => rest(step) > 1e-3 * (step.end - step.start))) names.push("other");
  return names;
}

/** What a part took of a step, ns. */
export function taken(step: Step, part: string): number {
  return step.parts[part] ?? (part === "other" ? rest(step) : 0);
}

function rest(step: Step): number {
  return Math.max(step.end - step.start - Object.values(step.parts).reduce((sum, value) => sum + value, 0), 0);
}

/** Columns for uPlot of one process: x is the step's number, each part drawn up to the sum of those before it; greatest sums first, so that smaller ones lie above. `inOrder`: x is the place in the list, as several processes have steps of one number. */
export function stacked(steps: readonly Step[], parts: readonly string[], inOrder = false): uPlot.AlignedData {
  const x = steps.map((step, i) => (inOrder ? i : step.number));
  if (parts.length === 0) return [x, steps.map((step) => step.end - step.start)];
  const sums: number[][] = [];
  let below = steps.map(() => 0);
  for (const part of parts) {
    below = steps.map((step, i) => below[i]! + taken(step, part));
    sums.push(below);
  }
  return [x, ...sums.reverse()];
}

/** Columns for uPlot of several processes: x is the step's number, one series of durations each; null where one has no such step. */
export function beside(steps: readonly Step[], processes: readonly number[]): uPlot.AlignedData {
  const x = [...new Set(steps.map((step) => step.number))].sort((a, b) => a - b);
  const place = new Map(x.map((number, i) => [number, i]));
  const columns = new Map(processes.map((process) => [process, Array.from<number | null>({ length: x.length }).fill(null)]));
  for (const step of steps) {
    const column = columns.get(step.process);
    if (column) column[place.get(step.number)!] = step.end - step.start;
  }
  return [x, ...processes.map((process) => columns.get(process)!)];
}

/** One step alone would be drawn over a range that means nothing: it stands between two that are not there. */
export function padded(data: uPlot.AlignedData): uPlot.AlignedData {
  const [x, ...series] = data;
  if (x.length !== 1) return data;
  return [[x[0]! - 1, x[0]!, x[0]! + 1], ...series.map((one) => [null, one[0] ?? null, null])];
}

export interface Spread {
  count: number;
  mean: number;
  median: number;
  p95: number;
  minimum: number;
  maximum: number;
}

/** Return figures over durations, ns; null where there are none. */
export function spread(steps: readonly Step[]): Spread | null {
  if (steps.length === 0) return null;
  const all = steps.map((step) => step.end - step.start).sort((a, b) => a - b);
  const at = (share: number) => {
    const place = share * (all.length - 1);
    const low = all[Math.floor(place)]!;
    return low + (all[Math.ceil(place)]! - low) * (place % 1);
  };
  return { count: all.length, mean: all.reduce((sum, value) => sum + value, 0) / all.length, median: at(0.5), p95: at(0.95), minimum: all[0]!, maximum: all.at(-1)! };
}

/** Of usual steps, in medians. */
const USUAL = 4;

/** Top of the plot in ns, if a few long steps would press all others to the bottom; else null. */
export function ceiling(steps: readonly Step[]): number | null {
  const all = spread(steps);
  if (all === null) return null;
  const usual = Math.max(...steps.map((step) => step.end - step.start).filter((length) => length <= all.median * USUAL)) * 1.25;
  return all.maximum > usual * 3 ? usual : null;
}
