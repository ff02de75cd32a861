/** Memory over time: a plot that leads to the timeline, and tables by operation or range. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { show } from "../../app/actions";
import { meta, offsets, source, trees, view } from "../../app/state";
import type { StatInfo } from "../../data/types";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { inReport, lasting } from "../parts/jump";
import { DOUBLED, PADDING, Plot, ROUND, axis, seriesColor } from "../parts/drawing/plot";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { TableView } from "../parts/table/table";
import { Tabs } from "../parts/tabs";
import { quantity, time } from "../parts/table/units";
import type { MemoryTrack } from "./counters";
import { aligned, memoryTracks } from "./counters";
import { Name } from "../parts/name";

const AT_FIRST = 8;
const WIDTH = 1200;
const TABLES = /^(gpu_memory_|cuda_gpu_mem_|memory_bandwidth|um_)/;

export function MemoryPanel() {
  const from = source.value;
  const report = panelReport.value;
  const tracks = useMemo(() => memoryTracks(trees.value[report] ?? []), [trees.value, report]);
  const stats = useAnswer(from && (() => from.statList(report)), [report, from, generation(report)]);
  return (
    <Answered of={stats} what="the tables of memory">
      {(list) => <Chosen key={report} report={report} tracks={tracks} stats={list.filter((one) => one.available && TABLES.test(one.name))} />}
    </Answered>
  );
}

function Chosen({ report, tracks, stats }: { report: number; tracks: MemoryTrack[]; stats: StatInfo[] }) {
  const tabs = [...(tracks.length > 0 ? [{ id: "plot", title: "Over time" }] : []), ...stats.map((one) => ({ id: one.name, title: one.title }))];
  const chosen = useSignal("");
  const id = tabs.some((tab) => tab.id === chosen.value) ? chosen.value : (tabs[0]?.id ?? "");
  if (id === "") {
    return (
      <>
        <div class="p-bar"><ReportChoice /></div>
        <Empty>This report has no memory data. Record with --cuda-memory-usage=true, or a PyTorch trace with profile_memory=True.</Empty>
      </>
    );
  }
  const bar = (
    <>
      <Tabs tabs={tabs} chosen={id} onChoose={(to) => (chosen.value = to)} label="What of memory" />
      <ReportChoice />
    </>
  );
  return <div class="p-main p-whole">{id === "plot" ? <><div class="p-bar">{bar}</div><Curves report={report} tracks={tracks} /></> : <Sums report={report} name={id}>{bar}</Sums>}</div>;
}

function Sums({ report, name, children }: { report: number; name: string; children: ComponentChildren }) {
  const from = source.value;
  const answer = useAnswer(from && (() => from.stat(report, name)), [`${report} ${name}`, from, generation(report)]);
  return (
    <>
      {answer.value === null && <div class="p-bar">{children}</div>}
      <Answered of={answer} what={`the table ${name}`}>{(table) => <TableView key={name} table={table} untitled>{children}</TableView>}</Answered>
    </>
  );
}

function Curves({ report, tracks }: { report: number; tracks: MemoryTrack[] }) {
  const from = source.value;
  const off = useSignal<ReadonlySet<number>>(new Set(tracks.slice(AT_FIRST).map((one) => one.track.track)));
  const follow = useSignal(false);
  const drawn = tracks.filter((one) => !off.value.has(one.track.track));
  const one = meta.value?.reports.find((each) => each.report === report);
  const seen = inReport(report, view.value);
  const span = follow.value ? seen : { begin: one?.begin ?? 0, end: one?.end ?? lasting(report) };
  const offset = offsets.value[report] ?? 0;
  const plots = useAnswer(
    from && drawn.length > 0
      ? (signal) => from.plots({ report, begin: span.begin, end: span.end, width: WIDTH, tracks: drawn.map((each) => each.track.track), limit: WIDTH * drawn.length * 2, generation: generation(report) }, signal)
      : null,
    [report, from, generation(report), drawn.map((each) => each.track.track).join(), span.begin, span.end],
    follow.value ? 120 : 0,
  );
  const units = [...new Set(drawn.map((each) => each.track.unit ?? ""))];
  const data = useMemo(() => {
    if (plots.value === null) return null;
    const byTrack = new Map(plots.value.map((plot) => [plot.track, plot]));
    const empty = { track: -1, begin: 0, end: 0, time: new Float64Array(), low: new Float64Array(), high: new Float64Array(), last: new Float64Array() };
    return aligned(drawn.map((each) => byTrack.get(each.track.track) ?? empty), offset, span.end);
  }, [plots.value, offset]);
  const toggle = (track: number) => {
    const next = new Set(off.value);
    if (!next.delete(track)) next.add(track);
    off.value = next;
  };
  return (
    <div class="p-split">
      <div class="p-list p-curves">
        <label class="p-choice"><input type="checkbox" checked={follow.value} onChange={(event) => (follow.value = event.currentTarget.checked)} /> only what the timeline shows</label>
        <fieldset>
          <legend class="p-dim">Curves</legend>
          {tracks.map((each) => {
            const at = drawn.indexOf(each);
            return (
              <label key={each.track.track} title={each.title}>
                <input type="checkbox" checked={at >= 0} onChange={() => toggle(each.track.track)} />
                <span class="p-swatch" aria-hidden="true" style={{ background: at < 0 ? "transparent" : seriesColor(at) }} />
                <span class="p-clip"><Name text={each.title} /></span>
                <span class="p-dim">{quantity(each.track.high ?? null, each.track.unit)}</span>
              </label>
            );
          })}
        </fieldset>
        <p class="p-dim p-small">The figure is the peak. Click goes to a time, drag shows a range.</p>
      </div>
      <div class="p-main">
        {drawn.length === 0 ? <Empty>No curve is chosen.</Empty> : (
          <Answered of={plots} what="the curves">
            {() => data !== null && data.length === drawn.length + 1 && (
              <div class="p-keyed" role="img" aria-label={`Memory over time: ${drawn.map((each) => `${each.title}, peak ${quantity(each.track.high ?? null, each.track.unit)}`).join("; ")}`}>
                <Plot data={data} look={`${drawn.length} ${units.join()}`} options={() => options(drawn, units)} />
              </div>
            )}
          </Answered>
        )}
      </div>
    </div>
  );
}

function options(drawn: readonly MemoryTrack[], units: readonly string[]): Omit<uPlot.Options, "width" | "height"> {
  const unit = units.length === 1 ? units[0]! : "";
  return {
    legend: { show: false },
    padding: PADDING,
    scales: { x: { time: false }, y: { range: (_plot, low, high) => [Math.min(low ?? 0, 0), (high || 1) * 1.06] } },
    axes: [axis(time, { space: 70, incrs: ROUND }), axis((value) => quantity(value, unit), { size: 74, ...(/^(B|bytes)$/.test(unit) ? { incrs: DOUBLED } : {}) })],
    series: [{}, ...drawn.map((_, i): uPlot.Series => ({ stroke: seriesColor(i), width: 1.5, fill: seriesColor(i, 0.12), spanGaps: false, points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) }))],
    cursor: { y: false, drag: { x: true, y: false, setScale: false } },
    hooks: {
      setSelect: [
        (plot) => {
          if (plot.select.width < 3) return;
          show({ begin: plot.posToVal(plot.select.left, "x"), end: plot.posToVal(plot.select.left + plot.select.width, "x") });
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      ready: [
        (plot) => {
          let pressed = 0;
          plot.over.addEventListener("mousedown", (event) => (pressed = event.clientX));
          plot.over.addEventListener("click", (event) => {
            if (Math.abs(event.clientX - pressed) > 2 || plot.cursor.left == null) return;
            const at = plot.posToVal(plot.cursor.left, "x");
            const half = (view.value.end - view.value.begin) / 2;
            show({ begin: at - half, end: at + half });
          });
        },
      ],
    },
  };
}
