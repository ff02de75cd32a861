/** Steps: the time of each training step and its parts; a click or Enter jumps there. */
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { selected, source } from "../../app/state";
import type { Steps } from "../../data/types";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { goToSpan } from "../parts/jump";
import { PADDING, Plot, ROUND, axis, seriesColor } from "../parts/drawing/plot";
import { remembered } from "../parts/remembered";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { count, percent, time } from "../parts/table/units";
import type { Step } from "./series";
import { beside, ceiling, owner, owners, padded, partsOf, spread, stacked, taken } from "./series";
import { Name } from "../parts/name";

const MOST_LINES = 16;
const BARS = 400;
const FEW = 64; // steps of several processes that are drawn one after the other, with their parts

/** What somebody said the ranges are called. */
const calledSo = () => remembered("steps", () => signal(""));

export function StepsPanel() {
  const from = source.value;
  const report = panelReport.value;
  const name = calledSo().value;
  const answer = useAnswer(from && (() => from.steps(report, name)), [`${report} ${name}`, from, generation(report)]);
  if (answer.error !== null && name !== "") {
    return (
      <>
        <div class="p-bar"><Called /><ReportChoice /></div>
        <Answered of={answer} what="the steps">{() => null}</Answered>
      </>
    );
  }
  return (
    <Answered of={answer} what="the steps">
      {(steps) => (steps.steps.length === 0 ? (
        <>
          <div class="p-bar"><Called /><ReportChoice /></div>
          <Empty>
            {steps.note ?? "No steps found. Steps are repeating NVTX ranges called step, iteration or batch, or PyTorch's profiler steps."}{" "}
            Enter the name of your step ranges above; a number after the name may differ.
          </Empty>
        </>
      ) : <Drawn steps={steps} report={report} />)}
    </Answered>
  );
}

/** Which ranges are steps: the selected one is offered. */
function Called() {
  const called = calledSo();
  const event = selected.value;
  const near = event !== null && event.table === "nvtx_ranges" && event.name !== called.value ? event.name : null;
  return (
    <>
      <label class="p-choice" title="Name of the ranges that are steps, with or without a number; empty: step, train_step, iteration, batch, ProfilerStep or similar">
        called{" "}
        <input type="search" class="p-called" value={called.value} placeholder="step, batch, …" aria-label="Name of the step ranges" maxLength={1000} spellcheck={false}
          onChange={(change) => (called.value = change.currentTarget.value.trim())} />
      </label>
      {near !== null && <button type="button" title="Use the selected range as a step" onClick={() => (called.value = near)}>Take “<Name text={near} most={30} />”</button>}
    </>
  );
}

function Drawn({ steps, report }: { steps: Steps; report: number }) {
  const who = useMemo(() => owners(steps.steps), [steps]);
  const chosen = useSignal<number | null>(null);
  const process = chosen.value !== null && who.some((one) => one.process === chosen.value) ? chosen.value : who.length === 1 ? who[0]!.process : null;
  const shown = useMemo(() => steps.steps.filter((step) => process === null || step.process === process).sort((a, b) => a.number - b.number || a.process - b.process), [steps, process]);
  const flat = process === null && shown.length <= FEW;
  const whole = process !== null || flat;
  const parts = useMemo(() => (whole ? partsOf(shown) : []), [shown, whole]);
  const lines = who.slice(0, MOST_LINES);
  const data = useMemo(() => padded(whole ? stacked(shown, parts, flat) : beside(shown, lines.map((one) => one.process))), [shown, parts, whole, flat]);
  const high = useMemo(() => ceiling(shown), [shown]);
  const uncut = useSignal(false);
  const top = uncut.value ? null : high;
  const above = top === null ? 0 : shown.filter((one) => one.end - one.start > top).length;
  const focus = useSignal<number>(0);
  const step = shown[Math.min(focus.value, shown.length - 1)]!;
  const go = (to: Step) => goToSpan(report, to.start, to.end);
  return (
    <div class="p-steps">
      <div class="p-main">
        <div class="p-bar">
          <h3>{count(shown.length)} × <Name text={steps.name} most={80} /></h3>
          <Called />
          <ReportChoice />
          {who.length > 1 && (
            <select aria-label="Which process" value={process === null ? "" : String(process)} onChange={(event) => {
              chosen.value = event.currentTarget.value === "" ? null : Number(event.currentTarget.value);
              focus.value = 0;
            }}>
              <option value="">all {who.length} beside each other</option>
              {who.map((one) => <option key={one.process} value={one.process}>{one.title}</option>)}
            </select>
          )}
          <ul class="p-legend" aria-label="Colours">
            {(whole ? parts : lines.map((one) => one.title)).map((name, i) => <li key={name}><Swatch color={seriesColor(i)} /> {name}</li>)}
            {!whole && who.length > MOST_LINES && <li class="p-dim">and {who.length - MOST_LINES} more: choose one</li>}
          </ul>
          {high !== null && (
            <label class="p-choice" title="A few far longer steps would hide the differences between all others">
              <input type="checkbox" checked={top !== null} onChange={(event) => (uncut.value = !event.currentTarget.checked)} />
              {" "}cut at {time(high)}{above > 0 && `: ${count(above)} ${above === 1 ? "is" : "are"} higher`}
            </label>
          )}
          {steps.note && <span class="p-dim p-small p-clip" title={steps.note}>{steps.note}</span>}
        </div>
        <Keyed shown={shown} flat={flat} focus={focus.value} onFocus={(to) => (focus.value = to)} onGo={() => go(step)} words={words(step, parts)}>
          {(ready) => (
            <Plot data={data} look={`${process ?? "all"} ${flat} ${parts.join(" ")} ${flat ? shown.length : shown.length > BARS} ${top}`} onReady={ready}
              options={() => options(whole ? Math.max(parts.length, 1) : lines.length, whole, shown.length, top, flat ? (place) => brief(shown[place]) : null, (number) => {
                const at = flat ? number : process === null ? longest(shown, number) : shown.findIndex((one) => one.number === number);
                if (shown[at] === undefined) return;
                focus.value = at;
                go(shown[at]);
              })} />
          )}
        </Keyed>
      </div>
      <Figures shown={shown} step={step} parts={parts} onGo={(to) => {
        focus.value = shown.indexOf(to);
        go(to);
      }} />
    </div>
  );
}

/** Of several processes' steps of one number the longest: it is what the others wait for. */
function longest(shown: readonly Step[], number: number): number {
  let best = -1;
  for (const [i, step] of shown.entries()) if (step.number === number && (best < 0 || step.end - step.start > shown[best]!.end - shown[best]!.start)) best = i;
  return best;
}

interface KeyedProps {
  shown: readonly Step[];
  /** x is the place in the list, not the number of the step. */
  flat: boolean;
  focus: number;
  onFocus: (to: number) => void;
  onGo: () => void;
  words: string;
  children: (ready: (plot: uPlot | null) => void) => ComponentChildren;
}

/** Arrows walk the steps, Enter goes to one; the plot's cursor follows. */
function Keyed({ shown, flat, focus, onFocus, onGo, words: said, children }: KeyedProps) {
  const plot = useRef<uPlot | null>(null);
  const move = (to: number) => {
    const next = Math.min(Math.max(to, 0), shown.length - 1);
    onFocus(next);
    const made = plot.current;
    if (made) made.setCursor({ left: made.valToPos(flat ? next : shown[next]!.number, "x"), top: made.valToPos(shown[next]!.end - shown[next]!.start, "y") });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowRight: focus + 1, ArrowLeft: focus - 1, PageDown: focus + 10, PageUp: focus - 10, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "Enter" || event.key === " ") onGo();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="p-keyed" tabIndex={0} role="slider" aria-label="Steps: arrow keys walk, Enter shows one on the timeline" aria-valuemin={0} aria-valuemax={shown.length - 1} aria-valuenow={focus}
      aria-valuetext={said} onKeyDown={onKeyDown}>
      {children((made) => (plot.current = made))}
    </div>
  );
}

/** A step under its bar: "3 · rank 1" as "3·r1". */
function brief(step: Step | undefined): string {
  return step === undefined ? "" : `${step.number}·${step.rank === null ? `p${step.process}` : `r${step.rank}`}`;
}

function options(series: number, one: boolean, shown: number, top: number | null, label: ((x: number) => string) | null, onClick: (number: number) => void): Omit<uPlot.Options, "width" | "height"> {
  const bars = one && shown <= BARS ? uPlot.paths.bars!({ size: [0.8, 40], align: 0 }) : undefined;
  return {
    legend: { show: false },
    padding: PADDING,
    // Half a step more on both sides: the first and the last bar are whole, and one alone is not as wide as all.
    scales: { x: { time: false, range: (_plot, low, high) => [low - 0.6, high + 0.6] }, y: { range: (_plot, _low, high) => [0, top ?? (high || 1) * 1.06] } },
    axes: [axis((value) => (Number.isInteger(value) ? (label?.(value) ?? String(value)) : "")), axis(time, { size: 64, incrs: ROUND })],
    series: [
      {},
      // Stacked ones are drawn from the greatest sum down: the first drawn is the last part.
      ...Array.from({ length: series }, (_, i): uPlot.Series => {
        const color = one ? series - 1 - i : i;
        return { stroke: seriesColor(color), width: one ? 0.5 : 1.5, ...(one ? { fill: seriesColor(color) } : {}), points: { show: !one && shown < 200 }, ...(bars ? { paths: bars } : {}) };
      }),
    ],
    cursor: { y: false, points: { show: !one }, drag: { x: true, y: false } },
    hooks: {
      ready: [
        (plot) => {
          let pressed = 0;
          plot.over.addEventListener("mousedown", (event) => (pressed = event.clientX));
          plot.over.addEventListener("click", (event) => {
            const at = plot.cursor.idx;
            if (at !== null && at !== undefined && Math.abs(event.clientX - pressed) < 3) onClick(plot.data[0][at]!);
          });
        },
      ],
    },
  };
}

function words(step: Step, parts: readonly string[]): string {
  const of = parts.filter((part) => taken(step, part) > 0).map((part) => `${part} ${time(taken(step, part))}`);
  return `Step ${step.number} of ${owner(step)}: ${time(step.end - step.start)}${of.length > 0 ? `, of it ${of.join(", ")}` : ""}`;
}

function Swatch({ color }: { color: string }) {
  return <span class="p-swatch" aria-hidden="true" style={{ background: color }} />;
}

function Figures({ shown, step, parts, onGo }: { shown: Step[]; step: Step; parts: string[]; onGo: (step: Step) => void }) {
  const all = useMemo(() => spread(shown), [shown]);
  const slowest = useMemo(() => [...shown].sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, 8), [shown]);
  const length = Math.max(step.end - step.start, 1);
  const several = new Set(shown.map((one) => one.process)).size > 1;
  return (
    <aside class="p-figures-side" aria-label="Figures of the steps">
      {all && (
        <dl class="p-fields p-figures">
          {([["Mean", all.mean], ["Median", all.median], ["P95", all.p95], ["Max", all.maximum]] as const).map(([name, value]) => (
            <div key={name}><dt>{name}</dt><dd>{time(value)}</dd></div>
          ))}
        </dl>
      )}
      <h4>
        Step {step.number}{several && ` of ${owner(step)}`}: {time(step.end - step.start)}{" "}
        <button type="button" onClick={() => onGo(step)}>Go there</button>
      </h4>
      {parts.length > 0 && (
        <dl class="p-fields">
          {parts.map((part, i) => taken(step, part) > 0 && (
            <div key={part}><dt><Swatch color={seriesColor(i)} /> {part}</dt><dd>{time(taken(step, part))} <span class="p-dim">{percent(taken(step, part) / length)}</span></dd></div>
          ))}
        </dl>
      )}
      <h4>The slowest</h4>
      <ol class="p-links">
        {slowest.map((one) => (
          <li key={`${one.process} ${one.number}`}>
            <button type="button" class="p-jump" onClick={() => onGo(one)}>{time(one.end - one.start)}</button>
            <span class="p-dim"> step {one.number}{several && ` of ${owner(one)}`}, at {time(one.start)}</span>
          </li>
        ))}
      </ol>
    </aside>
  );
}
