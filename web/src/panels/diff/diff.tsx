/** Two reports: the changes between them, and the step or range at which they are aligned. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { show } from "../../app/actions";
import { difference, meta, offsets, source, view } from "../../app/state";
import type { Difference } from "../../data/types";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { generation } from "../parts/report";
import { TableView } from "../parts/table/table";
import { Tabs } from "../parts/tabs";
import { time } from "../parts/table/units";
import { current, laid } from "./laying";
import { Name } from "../parts/name";

export function DiffPanel() {
  const from = source.value;
  const reports = meta.value?.reports ?? [];
  const two = reports.length > 1;
  const answer = useAnswer(from && two ? () => from.difference() : null, ["difference", from, generation(0), generation(1)]);
  const found = useSignal<Difference | null>(null);
  found.value = answer.value;
  useSignalEffect(() => {
    if (found.value !== null) difference.value = found.value;
  });
  if (!two) return <Empty>One report is open. To compare two, open both: warplens view BEFORE AFTER</Empty>;
  return (
    <div class="p-main p-whole">
      <Answered of={answer} what="the comparison">
        {(one) => one && <Changes of={one} />}
      </Answered>
    </div>
  );
}

function Changes({ of }: { of: Difference }) {
  const chosen = useSignal(0);
  const table = of.tables[Math.min(chosen.value, of.tables.length - 1)];
  return (
    <>
      <Laying of={of} />
      {table === undefined ? <Empty>No comparable data differs.</Empty> : (
        <TableView key={chosen.value} table={table} untitled={of.tables.length > 1} empty="Nothing changed here.">
          {of.tables.length > 1 && (
            <Tabs tabs={of.tables.map((one, i) => ({ id: String(i), title: one.title }))} chosen={String(Math.min(chosen.value, of.tables.length - 1))} onChoose={(id) => (chosen.value = Number(id))} label="What changed" />
          )}
        </TableView>
      )}
    </>
  );
}

function Both() {
  return (
    <>
      {(meta.value?.reports ?? []).slice(0, 2).map((one, i) => (
        <span key={one.report} class="p-ab"><b class={`p-letter p-letter-${"AB"[i]}`}>{"AB"[i]}</b> <Name text={one.name} most={60} /></span>
      ))}
    </>
  );
}

/** Where the two lie on each other: at their begins, or at a step or range of both. */
function Laying({ of }: { of: Difference }) {
  const chosen = useSignal(-1);
  const by = (offsets.value[1] ?? 0) - (offsets.value[0] ?? 0);
  const begins = [meta.value?.reports[0]?.begin ?? 0, meta.value?.reports[1]?.begin ?? 0];
  // Of several that are as far apart the one that was chosen.
  const own = of.anchors[chosen.value];
  const at = own !== undefined && own.a - own.b === by ? chosen.value : current(of.anchors, offsets.value);
  const together = by === begins[0]! - begins[1]!;
  const lay = (to: number) => {
    const anchor = of.anchors[to] ?? null;
    chosen.value = to;
    offsets.value = laid(anchor, begins);
    if (anchor === null) return;
    // The view keeps its width and begins a little before the place where they meet.
    const width = view.value.end - view.value.begin;
    show({ begin: anchor.a - width * 0.1, end: anchor.a + width * 0.9 });
  };
  if (of.anchors.length === 0) return <div class="p-bar"><Both /><span class="p-dim">have no step or NVTX range in common: they lie on each other at their begins.</span></div>;
  return (
    <div class="p-bar">
      <Both />
      <label class="p-choice">
        lie on each other at{" "}
        <select value={String(at)} onChange={(event) => lay(Number(event.currentTarget.value))}>
          <option value="-1">{at < 0 && !together ? "(moved)" : "their begins"}</option>
          {of.anchors.map((anchor, i) => <option key={i} value={String(i)}>{anchor.label.slice(0, 120)}</option>)}
        </select>
      </label>
      <button type="button" disabled={at <= 0} onClick={() => lay(at - 1)}>Previous</button>
      <button type="button" disabled={at >= of.anchors.length - 1} onClick={() => lay(at + 1)}>Next</button>
      {!together && <button type="button" onClick={() => lay(-1)}>At their begins</button>}
      <span class="p-dim" role="status">{together ? "Both begin together." : `B is moved by ${time(by)}.`}</span>
    </div>
  );
}
