/** The marked range: sums by name, busy share of each track, a flame graph; two ranges, or two reports, side by side. */
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { show } from "../../app/actions";
import { meta, offsets, ranges, source, trees } from "../../app/state";
import type { Source } from "../../data/source";
import type { Selected } from "../../data/types";
import { FlameBar, FlameBody, choiceOf } from "../flame/flame";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { remembered } from "../parts/remembered";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { TableView } from "../parts/table/table";
import { Tabs } from "../parts/tabs";
import { count, moment, time } from "../parts/table/units";
import type { Side } from "./sides";
import { comparedNames, namesTable, sides, tracksOf, tracksTable } from "./sides";

type Tab = "names" | "tracks" | "flame";
const TABS: { id: Tab; title: string }[] = [{ id: "names", title: "By name" }, { id: "tracks", title: "Tracks" }, { id: "flame", title: "Flame graph" }];

export function SelectionPanel() {
  const reports = meta.value?.reports.length ?? 0;
  const across = useSignal(false);
  const both = sides(ranges.value, panelReport.value, reports, offsets.value, across.value);
  if (both.length === 0) {
    return <Empty>No range is marked. Drag over the timeline to mark one, or press Shift+M to mark the time of the selected event. With Ctrl held, dragging marks a second range to compare with the first.</Empty>;
  }
  return (
    <div class="p-main p-whole">
      <div class="p-bar p-sides">
        {both.map((side) => <Head key={side.letter} side={side} />)}
        {both.length === 1 && <span class="p-dim">Ctrl+drag marks a second range to compare with it.</span>}
        <span class="p-space" />
        {!across.value && <ReportChoice />}
        {reports > 1 && ranges.value.length === 1 && (
          <label class="p-choice"><input type="checkbox" checked={across.value} onChange={(event) => (across.value = event.currentTarget.checked)} /> compare the reports</label>
        )}
        <button type="button" onClick={() => (ranges.value = [])}>Clear</button>
      </div>
      <Sums both={both} />
    </div>
  );
}

function Head({ side }: { side: Side }) {
  const { range, span } = side;
  return (
    <span class="p-side">
      {side.letter && <b class={`p-letter p-letter-${side.letter}`}>{side.letter}</b>}{" "}
      <b>{time(range.end - range.begin)}</b>
      <span class="p-dim" title={`${moment(span.begin)} to ${moment(span.end)}`}> {time(span.begin)} to {time(span.end)}</span>{" "}
      <button type="button" onClick={() => show(range)}>Zoom to it</button>
    </span>
  );
}

async function ask(from: Source, both: readonly Side[], abort: AbortSignal): Promise<Selected[]> {
  return Promise.all(both.map((side) => from.selected(side.report, side.span, tracksOf(trees.peek()[side.report] ?? []).map((one) => one.track.track), abort)));
}

function Sums({ both }: { both: Side[] }) {
  const from = source.value;
  const tab = remembered("selection", () => signal<Tab>("names"));
  const layer = remembered("layer of the selection", () => signal(""));
  const choice = choiceOf("selection");
  const known = trees.value; // asked again when tracks come
  const answer = useAnswer(
    from && ((abort) => ask(from, both, abort)),
    [both.map((side) => `${side.letter}${side.report}`).join(), from, ...[0, 1].flatMap((i) => [both[i]?.span.begin, both[i]?.span.end]), generation(both[0]!.report), known],
    120,
  );
  const bar = (
    <>
      <Tabs tabs={TABS} chosen={tab.value} onChoose={(id) => (tab.value = id)} label="View of the range" />
      {tab.value === "names" && answer.value && <Layers of={answer.value} chosen={layer.value} onChoose={(to) => (layer.value = to)} />}
      {answer.value && tab.value !== "flame" && <Busy of={answer.value} />}
    </>
  );
  if (tab.value === "flame") {
    return (
      <>
        <FlameBar choice={choice}>{bar}</FlameBar>
        <div class="p-split p-beside">
          {both.map((side) => (
            <FlameBody key={side.letter} report={side.report} span={side.span} choice={choice}>{side.letter && <b class={`p-letter p-letter-${side.letter}`}>{side.letter}</b>}</FlameBody>
          ))}
        </div>
      </>
    );
  }
  return (
    <>
      {answer.value === null && <div class="p-bar">{bar}</div>}
      <Answered of={answer} what="the sums">
        {(answers) => (tab.value === "names" ? <Names answers={answers} layer={layer.value}>{bar}</Names> : <Tracks answers={answers} both={both}>{bar}</Tracks>)}
      </Answered>
    </>
  );
}

function Layers({ of, chosen, onChoose }: { of: Selected[]; chosen: string; onChoose: (layer: string) => void }) {
  const layers = [...new Set(of.flatMap((one) => one.names.map((row) => row.layer)))].sort();
  return (
    <select aria-label="Which layer" value={layers.includes(chosen) ? chosen : ""} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">all layers</option>
      {layers.map((layer) => <option key={layer} value={layer}>{layer}</option>)}
    </select>
  );
}

/** How much there is, in one line that screen readers hear when the range changes. */
function Busy({ of }: { of: Selected[] }) {
  const words = of.map((one) => {
    const events = one.tracks.reduce((sum, track) => sum + track.events, 0);
    const active = one.tracks.filter((track) => track.events > 0).length;
    return `${count(events)} ${events === 1 ? "event" : "events"} on ${active} ${active === 1 ? "track" : "tracks"}`;
  });
  return <span class="p-dim" role="status">{words.join(" | ")}</span>;
}

function Names({ answers, layer, children }: { answers: Selected[]; layer: string; children: ComponentChildren }) {
  const [a, b] = answers;
  const known = answers.some((one) => one.names.some((row) => row.layer === layer)) ? layer : "";
  const table = useMemo(() => (b ? comparedNames(a!, b, known) : namesTable(a!, known)), [a, b, known]);
  return <TableView table={table} untitled empty="Nothing ran in this range.">{children}</TableView>;
}

function Tracks({ answers, both, children }: { answers: Selected[]; both: Side[]; children: ComponentChildren }) {
  const table = useMemo(() => {
    const paths = both.map((side) => new Map(tracksOf(trees.peek()[side.report] ?? []).map((one) => [one.track.track, one.path])));
    return tracksTable(answers, paths);
  }, [answers]);
  return <TableView table={table} untitled empty="No track has anything in this range.">{children}</TableView>;
}
