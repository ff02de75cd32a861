/** Stats: the tables that `warplens stats` prints, of the whole report or of the marked range. */
import { signal, useSignal } from "@preact/signals";
import { ranges, source } from "../../app/state";
import type { StatInfo } from "../../data/types";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { inReport } from "../parts/jump";
import { remembered } from "../parts/remembered";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { TableView } from "../parts/table/table";
import { time } from "../parts/table/units";

const FIRST = ["cuda_gpu_kern_sum", "nvtx_sum", "cuda_api_sum", "python_hotspots", "cpu_hotspots", "op_sum"];

export function StatsPanel() {
  const from = source.value;
  const report = panelReport.value;
  const list = useAnswer(from && (() => from.statList(report)), [report, from, generation(report)]);
  return (
    <Answered of={list} what="the list of tables">
      {(stats) => <Chosen key={report} stats={stats} report={report} />}
    </Answered>
  );
}

function Chosen({ stats, report }: { stats: StatInfo[]; report: number }) {
  const name = remembered(`stats ${report}`, () => signal(first(stats)));
  const onlyRange = remembered("stats of the range", () => signal(false));
  const filter = useSignal("");
  const words = filter.value.toLowerCase();
  const kept = stats.filter((one) => `${one.name} ${one.title}`.toLowerCase().includes(words));
  const available = kept.filter((one) => one.available);
  const missing = kept.filter((one) => !one.available);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || available.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = available.findIndex((one) => one.name === name.value);
    name.value = available[Math.min(Math.max(at + step, 0), available.length - 1)]!.name;
    document.getElementById(`stat-${name.value}`)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <div class="p-split">
      <nav class="p-list" aria-label="Tables">
        <input type="search" placeholder="Find a table" aria-label="Find a table" value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
        <ul role="listbox" tabIndex={0} aria-label="Tables with data" aria-activedescendant={`stat-${name.value}`} onKeyDown={onKeyDown}>
          {available.map((one) => (
            <li key={one.name} id={`stat-${one.name}`} role="option" aria-selected={one.name === name.value} title={one.name} onClick={() => (name.value = one.name)}>
              {one.title}
            </li>
          ))}
        </ul>
        {missing.length > 0 && (
          <details>
            <summary>{missing.length} without data</summary>
            <ul>{missing.map((one) => <li key={one.name} class="p-dim" title={one.name}>{one.title}</li>)}</ul>
          </details>
        )}
        {kept.length === 0 && <Empty>No table is called that.</Empty>}
      </nav>
      {name.value === "" ? <Empty>This report has no data for any table.</Empty> : <One name={name.value} report={report} ranged={onlyRange.value} onRanged={(on) => (onlyRange.value = on)} />}
    </div>
  );
}

function One({ name, report, ranged, onRanged }: { name: string; report: number; ranged: boolean; onRanged: (on: boolean) => void }) {
  const from = source.value;
  const range = ranges.value[0] ?? null;
  const span = ranged && range ? inReport(report, range) : undefined;
  const answer = useAnswer(
    from && (() => from.stat(report, name, span)),
    [name, report, from, generation(report), span?.begin, span?.end],
    span ? 150 : 0,
  );
  const choice = (
    <>
      <ReportChoice />
      <label class="p-choice" title={range ? "" : "Drag over the timeline to mark a range"}>
        <input type="checkbox" checked={ranged && range !== null} disabled={range === null} onChange={(event) => onRanged(event.currentTarget.checked)} />
        {" "}only the marked range{range ? ` (${time(range.end - range.begin)})` : ""}
      </label>
    </>
  );
  return (
    <div class="p-main">
      {answer.value === null && <div class="p-bar">{choice}</div>}
      <Answered of={answer} what={`the table ${name}`}>
        {(table) => <TableView key={name} table={table} empty={span ? "Nothing in the marked range." : "The table has no rows."}>{choice}</TableView>}
      </Answered>
    </div>
  );
}

function first(stats: readonly StatInfo[]): string {
  const has = new Set(stats.filter((one) => one.available).map((one) => one.name));
  return FIRST.find((name) => has.has(name)) ?? [...has][0] ?? "";
}
