/** A file line by line with its share of the samples: the hotter a line, the redder. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { source } from "../../app/state";
import type { SourceLine, SourceLines } from "../../data/types";
import { Answered, useAnswer } from "../parts/answer";
import { ExtentChoice, extentOf, spanOf } from "../parts/extent";
import { remembered } from "../parts/remembered";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { Tabs } from "../parts/tabs";
import { percent } from "../parts/table/units";
import { place } from "./place";

type By = "total" | "self";
const BY: { id: By; title: string }[] = [{ id: "total", title: "Total" }, { id: "self", title: "Self" }];
const MOST = 0.7; // opacity of the hottest line

export function SourcePanel() {
  const from = source.value;
  const report = panelReport.value;
  const extent = extentOf("source lines");
  const by = remembered("colour of source lines", () => signal<By>("total"));
  const { file, line } = place.value;
  const span = spanOf(extent.value, report);
  const answer = useAnswer(from && (() => from.source(report, file, span)), [`${report} ${file}`, from, generation(report), span?.begin, span?.end], span ? 200 : 0);
  return (
    <div class="p-main p-whole">
      <div class="p-bar">
        <ReportChoice />
        <ExtentChoice extent={extent} />
        {answer.value && <Files of={answer.value} />}
        <span class="p-space" />
        <Tabs tabs={BY} chosen={by.value} onChoose={(id) => (by.value = id)} label="Colour by" />
      </div>
      <Answered of={answer} what="the lines">{(lines) => <Lines of={lines} by={by.value} wanted={line} />}</Answered>
    </div>
  );
}

function Files({ of }: { of: SourceLines }) {
  const known = of.files.some((one) => one.path === of.path);
  return (
    <select aria-label="File" value={of.path} onChange={(event) => (place.value = { file: event.currentTarget.value, line: null })}>
      {!known && <option value={of.path}>{of.path}</option>}
      {of.files.map((one) => <option key={one.path} value={one.path}>{percent(one.total)} {one.path}</option>)}
    </select>
  );
}

function Lines({ of, by, wanted }: { of: SourceLines; by: By; wanted: number | null }) {
  const body = useRef<HTMLTableSectionElement>(null);
  const most = Math.max(...of.lines.map((one) => one[by] ?? 0), 0);
  const hottest = of.lines.find((one) => most > 0 && one[by] === most)?.line ?? null;
  const shown = wanted ?? hottest;
  useEffect(() => {
    body.current?.querySelector(`[data-line="${shown ?? ""}"]`)?.scrollIntoView({ block: "center" });
  }, [of.path, shown]);
  return (
    <div class="p-source">
      {of.note && <p class="p-note">{of.note}</p>}
      <table aria-label={`Lines of ${of.path}`}>
        <thead><tr><th>Line</th><th>Total</th><th>Self</th><th>{of.path}</th></tr></thead>
        <tbody ref={body}>
          {of.lines.map((one, i) => <Row key={one.line} one={one} gap={one.line !== (of.lines[i - 1]?.line ?? 0) + 1} heat={opacity(one[by], most)} wanted={one.line === wanted} />)}
        </tbody>
      </table>
    </div>
  );
}

/** The root, so that a hundredth can still be seen. */
function opacity(share: number | undefined, most: number): number {
  return share === undefined || most === 0 ? 0 : MOST * Math.sqrt(share / most);
}

function Row({ one, gap, heat, wanted }: { one: SourceLine; gap: boolean; heat: number; wanted: boolean }) {
  const style = { "--heat": heat.toFixed(2) } as Record<string, string>;
  return (
    <>
      {gap && one.text !== null && <tr class="p-dim" aria-hidden="true"><td>⋮</td></tr>}
      <tr data-line={one.line} class={wanted ? "p-wanted" : ""} style={style} title={one.function}>
        <th scope="row">{one.line}</th>
        <td>{shared(one.total)}</td>
        <td>{shared(one.self)}</td>
        <td>{one.text ?? <span class="p-dim">in {one.function}</span>}</td>
      </tr>
      {one.instructions && <tr class="p-dim"><td class="p-below" colSpan={4}>{one.instructions}</td></tr>}
    </>
  );
}

function shared(share: number | undefined): string {
  return share === undefined || share < 0.0005 ? "" : percent(share);
}
