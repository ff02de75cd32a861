/** A small report for tests of panels: every answer by hand and replaceable; draws a panel and waits for it. */
import type { ComponentType } from "preact";
import { h, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach } from "vitest";
import { details, difference, found, meta, notice, offsets, ranges, selected, source, trees, view } from "../../app/state";
import type { Source } from "../../data/source";
import { panelReport } from "../parts/report";
import { HITS, TREE, node, reportMeta } from "./data";

export * from "./data";

/** A source that answers from constants; `more` replaces methods. */
export function fake(more: Partial<Source> = {}): Source {
  const never = new Promise<number[]>(() => undefined);
  return {
    meta: async () => reportMeta(),
    tracks: async () => TREE,
    viewport: async () => Promise.reject(new Error("not in tests of panels")),
    plots: async () => [{ track: 9, begin: 0, end: 1000, time: Float64Array.of(0, 500), low: Float64Array.of(0, 1024), high: Float64Array.of(0, 2048), last: Float64Array.of(0, 1024) }],
    event: async (of) => ({ event: HITS.find((one) => one.row === of.row) ?? HITS[0]!, title: "kernel", fields: [{ name: "registers", value: 32 }], payload: null, stack: [], links: [], parents: [] }),
    alike: async () => ({ name: "kernel", count: 4, total: 50, minimum: 10, median: 10, p99: 20, maximum: 20, edges: [10, 15, 20], counts: [3, 1], longest: [HITS[2]!] }),
    search: async (_report, text, _regex, from, limit) => {
      const events = HITS.filter((one) => one.name.includes(text));
      const at = events.findIndex((one) => one.start >= from);
      const middle = at < 0 ? events.length : at;
      return { total: events.length, before: middle, names: events.length > 0 ? [{ layer: "kernels", text: "kernel", count: events.length }] : [], events: events.slice(Math.max(middle - limit, 0), middle + limit) };
    },
    findings: async () => ({ findings: [], notJudged: [], silent: [] }),
    statList: async () => [{ name: "cuda_gpu_kern_sum", title: "CUDA GPU Kernel Summary", available: true }, { name: "mpi_event_sum", title: "MPI Event Summary", available: false }],
    stat: async (_report, name, span) => ({
      title: span ? `${name} of ${span.begin} to ${span.end}` : name,
      columns: [{ name: "Name", unit: null, kind: "text" }, { name: "Total Time", unit: "ns", kind: "number" }],
      rows: [["b", 5], ["a", 7_000]],
    }),
    selected: async (_report, span) => ({
      begin: span.begin, end: span.end, tracks: [{ track: 3, busy: 0.25, events: 2 }],
      names: [{ layer: "kernels", name: "kernel", count: 2, total: (span.end - span.begin) / 4, mean: 10, maximum: 20 }],
    }),
    flame: async (_report, kind) => ({ kind, unit: "ns", root: node("all", kind === "nvtx" ? 100 : 0, kind === "nvtx" ? [node("step", 80, [node("forward", 50)]), node("load", 20)] : []) }),
    source: async (_report, file) => ({
      files: [{ path: "/app/train.py", total: 1, self: 0.5, library: false }, { path: "/lib/json.py", total: 0.5, self: 0.5, library: true }],
      path: file || "/app/train.py", note: "",
      lines: [{ line: 1, text: "import json" }, { line: 2, text: "json.loads(text)", function: "main", total: 1, self: 0.25, instructions: "50% specialised" }, { line: 9, text: "main()", function: "<module>", total: 0.5, self: 0.25 }],
    }),
    steps: async () => ({ name: "step", steps: [] }),
    diagnostics: async () => ({ title: "Diagnostics", columns: [], rows: [] }),
    sql: async (_report, text) => text.includes("information_schema")
      ? { title: "Rows", columns: [], rows: [["kernels", "start", "BIGINT"], ["kernels", "end", "BIGINT"]] }
      : { title: "Rows", columns: [{ name: "start", unit: "ns", kind: "time" }, { name: "name", unit: null, kind: "text" }], rows: [[300, "kernel"]], links: [HITS[1]!] },
    difference: async () => null,
    changed: () => never,
    at: async () => null,
    ...more,
  };
}

/** Set the state that a page has after it was loaded. */
export function load(from: Source, reports = 1): void {
  source.value = from;
  meta.value = reportMeta(reports);
  trees.value = Array.from({ length: reports }, () => TREE);
  offsets.value = Array.from({ length: reports }, () => 0);
  view.value = { begin: 0, end: 1000 };
}

/** Draw it into the page. */
export function draw(component: ComponentType): HTMLElement {
  const place = document.createElement("div");
  document.body.append(place);
  void act(() => render(h(component, null), place));
  return place;
}

// Far beyond what any of it takes, below the test's own timeout, so that the failure shows its reason.
const LIMIT = Number(process.env.WARPLENS_TEST_WAIT ?? 50_000);

/** Wait until `what` gives something; throws the reason if it never does. */
export async function until<T>(what: () => T | null | undefined | false, limit = LIMIT): Promise<T> {
  const end = Date.now() + limit;
  for (;;) {
    await act(async () => {
      await new Promise((done) => setTimeout(done, 5));
    });
    const value = what();
    if (value) return value;
    if (Date.now() > end) throw new Error(`it never came: ${what.toString()} in ${document.body.innerHTML.slice(0, 2000)}`);
  }
}

/** Press a key where somebody has the focus. */
export function press(on: Element, key: string, more: KeyboardEventInit = {}): void {
  void act(() => void on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more })));
}

export function click(on: Element): void {
  void act(() => (on as HTMLElement).click());
}

/** Write into a field. */
export function type(into: Element, text: string): void {
  const field = into as HTMLInputElement;
  void act(() => {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

afterEach(() => {
  // Tests of logic have no document.
  for (let place = globalThis.document?.body.firstElementChild; place; place = document.body.firstElementChild) {
    render(null, place);
    place.remove();
  }
  source.value = meta.value = selected.value = details.value = found.value = difference.value = null;
  [trees.value, ranges.value, offsets.value, notice.value, panelReport.value] = [[], [], [0], "", 0];
});
