/** Flame graphs of samples, ranges and kernels; as graph, tree map, call tree or list; of the run, the visible or the marked time. */
import type { Signal } from "@preact/signals";
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { meta, source } from "../../app/state";
import type { Span } from "../../data/source";
import type { Flame, FlameNode, Table } from "../../data/types";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { ExtentChoice, extentOf, spanOf } from "../parts/extent";
import { remembered } from "../parts/remembered";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { expression } from "../parts/table/sorting";
import { openSource, parsed } from "../source/place";
import { TableView } from "../parts/table/table";
import { Tabs } from "../parts/tabs";
import { percent } from "../parts/table/units";
import { Graph, valued } from "./graph";
import { parentsOf, pathTo } from "./layout";
import { merged } from "./merge";
import { byName, matched } from "./sums";
import { CallTree } from "./tree";
import { Name } from "../parts/name";

type Kind = Flame["kind"];
type Shape = "flame" | "map" | "tree" | "list";

export const KINDS: { id: Kind; title: string; missing: string }[] = [
  { id: "kernels", title: "Kernels", missing: "No kernels. Record with --trace=cuda." },
  { id: "nvtx", title: "NVTX", missing: "No NVTX ranges. Annotate the program with warplens.nvtx or any NVTX library." },
  { id: "samples", title: "CPU samples", missing: "No stack samples. Record with --sample=process-tree or --python-sampling=true." },
  { id: "wall", title: "Wall time", missing: "No Python samples. Record with --python-sampling=true." },
  { id: "tasks", title: "Tasks", missing: "No asyncio tasks. Record them with --python-sampling=true and CPython 3.11 or later." },
  { id: "python", title: "Python calls", missing: "No calls of Python functions. Record with --python-functions-trace, or trace with PyTorch and with_stack=True." },
];
const SHAPES: { id: Shape; title: string }[] = [{ id: "flame", title: "Flame graph" }, { id: "map", title: "Tree map" }, { id: "tree", title: "Call tree" }, { id: "list", title: "By name" }];

/** What is chosen; graphs beside each other share it. */
export interface Choice {
  kind: Signal<Kind | null>;
  shape: Signal<Shape>;
  filter: Signal<string>;
}

/** What was chosen last in a panel. */
export function choiceOf(panel: string): Choice {
  return remembered(`flame graph of ${panel}`, () => ({ kind: signal<Kind | null>(null), shape: signal<Shape>("flame"), filter: signal("") }));
}

export function FlamePanel() {
  const extent = extentOf("the flame graph");
  const choice = choiceOf("all");
  const report = panelReport.value;
  return (
    <div class="p-main p-whole">
      <FlameBar choice={choice}>
        <ReportChoice />
        <ExtentChoice extent={extent} />
      </FlameBar>
      <FlameBody report={report} span={spanOf(extent.value, report)} choice={choice} />
    </div>
  );
}

function has(id: Kind): boolean {
  const features = meta.value?.features ?? [];
  return features.length === 0 || features.includes(id);
}

/** The choices, in one bar. */
export function FlameBar({ choice, children }: { choice: Choice; children?: ComponentChildren }) {
  const { kind, shape, filter } = choice;
  const current = kind.value ?? KINDS.find((one) => has(one.id))?.id ?? "kernels";
  return (
    <div class="p-bar">
      {children}
      <Tabs tabs={KINDS.map((one) => ({ ...one, dim: !has(one.id) }))} chosen={current} onChoose={(id) => (kind.value = id)} label="Of what" />
      <span class="p-space" />
      <Tabs tabs={SHAPES} chosen={shape.value} onChoose={(id) => (shape.value = id)} label="As what" />
      <input type="search" placeholder="Highlight names" aria-label="Highlight names in the graph" value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
    </div>
  );
}

/** One graph; what nobody chose is the first kind that has something, and then it is chosen. */
export function FlameBody({ report, span, choice, children }: { report: number; span: Span | undefined; choice: Choice; children?: ComponentChildren }) {
  const from = source.value;
  const { kind, shape, filter } = choice;
  const some = KINDS.filter((one) => has(one.id)).map((one) => one.id);
  const asked = kind.value === null ? some : has(kind.value) ? [kind.value] : [];
  const shown = useAnswer(
    from && asked.length > 0 ? () => firstOf(asked, (each) => from.flame(report, each, span)) : null,
    [`${report} ${asked.join()}`, from, generation(report), span?.begin, span?.end],
    span ? 200 : 0,
  );
  useEffect(() => {
    if (kind.peek() === null && shown.value !== null && shown.value.kind !== some[0]) kind.value = shown.value.kind;
  }, [shown.value]);
  const missing = KINDS.find((one) => one.id === (kind.value ?? some[0] ?? "kernels"))!.missing;
  return (
    <div class="p-main">
      {asked.length === 0 && <Empty>{missing}</Empty>}
      <Answered of={shown} what="the graph">
        {(flame) => (flame.root.value <= 0 ? <Empty>{missing}</Empty> : <Drawn flame={flame} shape={shape.value} filter={filter.value}>{children}</Drawn>)}
      </Answered>
    </div>
  );
}

/** The first kind that has something; else the last one asked, which is empty. */
async function firstOf(kinds: readonly Kind[], ask: (kind: Kind) => Promise<Flame>): Promise<Flame> {
  let failure: unknown = null;
  let empty: Flame | null = null;
  for (const id of kinds) {
    try {
      const flame = await ask(id);
      if (flame.root.value > 0) return flame;
      empty ??= flame;
    } catch (error) {
      failure ??= error;
    }
  }
  if (empty !== null) return empty;
  throw failure;
}

function Drawn({ flame: given, shape, filter, children }: { flame: Flame; shape: Shape; filter: string; children?: ComponentChildren }) {
  const flame = useMemo(() => ({ ...given, root: merged(given.root) }), [given]);
  const zoomed = useSignal<FlameNode | null>(null);
  const parents = useMemo(() => parentsOf(flame.root), [flame]);
  const at = zoomed.value !== null && (zoomed.value === flame.root || parents.has(zoomed.value)) ? zoomed.value : flame.root;
  const code = at.place === undefined ? null : parsed(at.place);
  const lit = useMemo(() => (filter.trim() === "" ? null : matched(flame.root, tester(filter.trim()))), [flame, filter]);
  const table = useMemo(() => (shape === "list" ? listed(flame, at) : null), [flame, at, shape]);
  return (
    <>
      <div class="p-bar p-way">
        {children}
        {shape !== "list" && (
          <nav aria-label="Zoomed to">
            {pathTo(at, parents).slice(-6).map((node, i, all) => (
              <span key={i}>
                {i > 0 && <span class="p-dim"> › </span>}
                {i === all.length - 1 ? <b><Name text={node.name} most={120} /></b> : <button type="button" class="p-jump" onClick={() => (zoomed.value = node)}><Name text={node.name} most={60} /></button>}
              </span>
            ))}
            <span class="p-dim"> {valued(at.value, flame)}</span>
            {code !== null && <button type="button" class="p-jump p-to-source" onClick={() => openSource(code)}>Source</button>}
          </nav>
        )}
        <span class="p-space" />
        {lit && <span role="status">{lit.nodes.size === 0 ? "Nothing is called that." : `${valued(lit.value, flame)} in ${lit.nodes.size} boxes, ${percent(lit.value / flame.root.value)}`}</span>}
        {at !== flame.root && <button type="button" onClick={() => (zoomed.value = null)}>Show all</button>}
      </div>
      {shape === "tree" ? <CallTree key={at.name} flame={flame} root={at} matches={lit?.nodes ?? null} />
        : table !== null ? <TableView table={table} />
        : <Graph flame={flame} parents={parents} shape={shape as "flame" | "map"} zoomed={at} onZoom={(node) => (zoomed.value = node)} matches={lit?.nodes ?? null} />}
    </>
  );
}

function tester(filter: string): (name: string) => boolean {
  const pattern = filter.length > 2 && filter.startsWith("/") && filter.endsWith("/") ? expression(filter.slice(1, -1)) : null;
  if (pattern !== null) return (name) => pattern.test(name);
  const text = filter.toLowerCase();
  return (name) => name.toLowerCase().includes(text);
}

function listed(flame: Flame, root: FlameNode): Table {
  const unit = flame.unit === "ns" ? "ns" : null;
  const whole = root.value || 1;
  return {
    title: "By name",
    columns: [
      { name: "Name", unit: null, kind: "text" },
      { name: "Itself", unit, kind: "number" },
      { name: "Itself (%)", unit: "%", kind: "number" },
      { name: "Total", unit, kind: "number" },
      { name: "Total (%)", unit: "%", kind: "number" },
    ],
    rows: byName(root).map((one) => [one.name, one.self, (one.self / whole) * 100, one.total, (one.total / whole) * 100]),
  };
}
