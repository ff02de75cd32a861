/** SQL over the report's tables: one SELECT, its rows as a table whose rows lead to the timeline. */
import { signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { source } from "../../app/state";
import type { Table } from "../../data/types";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { goToSpan } from "../parts/jump";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { TableView } from "../parts/table/table";
import { EXAMPLES, LISTING } from "./examples";
import type { Listed } from "./rows";
import { listed, remembered, spanOf } from "./rows";

// What was written stays when the panel is closed.
const written = signal("");
const history = signal<readonly string[]>([]);
const asked = signal<{ text: string; report: number; turn: number } | null>(null);

export function SqlPanel() {
  const from = source.value;
  const report = panelReport.value;
  const editor = useRef<HTMLTextAreaElement>(null);
  const tables = useAnswer(from && (() => from.sql(report, LISTING)), [report, from, generation(report)]);
  const question = asked.value;
  const answer = useAnswer(from && question && (() => from.sql(question.report, question.text)), [question?.turn, from]);
  const run = () => {
    const text = written.value.trim();
    if (text === "") return;
    history.value = remembered(history.value, text);
    asked.value = { text, report, turn: (asked.value?.turn ?? 0) + 1 };
  };
  const insert = (text: string) => {
    const field = editor.current;
    const [from_, to] = [field?.selectionStart ?? written.value.length, field?.selectionEnd ?? written.value.length];
    written.value = written.value.slice(0, from_) + text + written.value.slice(to);
    requestAnimationFrame(() => {
      field?.focus();
      field?.setSelectionRange(from_ + text.length, from_ + text.length);
    });
  };
  return (
    <div class="p-split">
      <nav class="p-list p-schema" aria-label="Tables of the report">
        <Answered of={tables} what="the list of tables">
          {(table) => <Schema tables={listed(table)} onInsert={insert} />}
        </Answered>
      </nav>
      <div class="p-main">
        <div class="p-sql">
          <textarea ref={editor} value={written.value} rows={4} spellcheck={false} aria-label="SQL: one SELECT; Ctrl+Enter runs it" placeholder={'SELECT name, "end" - start AS duration, start FROM kernels ORDER BY 2 DESC LIMIT 100      (Ctrl+Enter runs it)'}
            onInput={(event) => (written.value = event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                run();
              }
            }} />
          <div class="p-sql-tools">
            <button type="button" class="p-primary" disabled={written.value.trim() === ""} onClick={run}>Run</button>
            <Starters tables={tables.value} onChoose={(text) => (written.value = text)} />
            <ReportChoice />
          </div>
        </div>
        {question === null ? <Empty>Choose an example, or write a SELECT over the tables on the left. It cannot change anything.</Empty> : (
          <Answered of={answer} what="the rows">
            {(table) => <Rows table={table} report={question.report} />}
          </Answered>
        )}
      </div>
    </div>
  );
}

function Rows({ table, report }: { table: Table; report: number }) {
  const has = spanOf(table, 0) !== null || table.rows.some((_, i) => spanOf(table, i) !== null);
  const open = (row: number) => {
    const span = spanOf(table, row);
    if (span) goToSpan(report, span.start, span.end);
  };
  return <TableView table={table} empty="The query returned no rows." {...(has ? { onOpen: open, opens: (row: number) => spanOf(table, row) !== null } : {})} />;
}

function Starters({ tables, onChoose }: { tables: Table | null; onChoose: (text: string) => void }) {
  const chosen = useSignal("");
  const known = new Set(tables?.rows.map((row) => String(row[0])));
  const examples = EXAMPLES.filter((one) => tables === null || known.has(one.table));
  return (
    <select aria-label="Examples and previous queries" value={chosen.value} onChange={(event) => {
      const [kind, at] = event.currentTarget.value.split(" ");
      const text = kind === "example" ? examples[Number(at)]?.text : history.value[Number(at)];
      if (text !== undefined) onChoose(text);
      event.currentTarget.value = "";
    }}>
      <option value="">Examples …</option>
      <optgroup label="Examples">
        {examples.map((one, i) => <option key={one.title} value={`example ${i}`}>{one.title}</option>)}
      </optgroup>
      {history.value.length > 0 && (
        <optgroup label="Asked before">
          {history.value.map((text, i) => <option key={text} value={`history ${i}`}>{text.replaceAll(/\s+/g, " ").slice(0, 80)}</option>)}
        </optgroup>
      )}
    </select>
  );
}

function Schema({ tables, onInsert }: { tables: Listed[]; onInsert: (text: string) => void }) {
  if (tables.length === 0) return <Empty>The report has no tables.</Empty>;
  return (
    <ul aria-label="Tables">
      {tables.map((one) => (
        <li key={one.name}>
          <details>
            <summary>{one.name}</summary>
            <button type="button" class="p-jump" title={`Insert ${one.name}`} onClick={() => onInsert(one.name)}>insert the name</button>
            <ul aria-label={`Columns of ${one.name}`}>
              {one.columns.map((column) => (
                <li key={column.name}>
                  <button type="button" class="p-jump" title={`Insert ${column.name}`} onClick={() => onInsert(quoted(column.name))}>{column.name}</button> <span class="p-dim">{column.type.toLowerCase()}</span>
                </li>
              ))}
            </ul>
          </details>
        </li>
      ))}
    </ul>
  );
}

/** `end` and the like are words of SQL. */
function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !/^(end|order|group|table|column|desc|asc|limit|all|any)$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}
