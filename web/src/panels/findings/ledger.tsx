/** The ledger of all time: each cause with its share, and its finding, or why there is none. */
import { useSignal } from "@preact/signals";
import { source } from "../../app/state";
import type { Finding, Findings, Table } from "../../data/types";
import { Answered, useAnswer } from "../parts/answer";
import { Bar } from "../parts/drawing/bar";
import { Name } from "../parts/name";
import { generation } from "../parts/report";
import { time } from "../parts/table/units";

interface Props {
  found: Findings;
  report: number;
  onChoose: (finding: Finding) => void;
}

/** Asked for only when it is opened: it divides all time of a thread. */
export function Ledger({ found, report, onChoose }: Props) {
  const open = useSignal(false);
  return (
    <details class="p-ledger" onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>Where all time went</summary>
      {open.value && <Rows found={found} report={report} onChoose={onChoose} />}
    </details>
  );
}

function Rows({ found, report, onChoose }: Props) {
  const from = source.value;
  const answer = useAnswer(from && (() => from.stat(report, "time_ledger")), [report, from, generation(report)]);
  return (
    <Answered of={answer} what="the ledger">
      {(table) => (
        <table>
          {places(entries(table)).map(([where, own]) => (
            <tbody key={where}>
              <tr><th colSpan={4} scope="rowgroup"><Name text={where} most={60} /></th></tr>
              {own.map((one) => {
                const about = judged(one.rules, found);
                return (
                  <tr key={one.cause}>
                    <td><Bar share={one.share} most={null} label="Of its time" /></td>
                    <td class="p-ledger-time">{time(one.time)}</td>
                    <td><Name text={one.most === "" ? one.cause : `${one.cause}: ${one.most}`} most={60} /></td>
                    <td>{typeof about === "string" ? <span class="p-dim">{about}</span> : <button type="button" class="p-link" onClick={() => onChoose(about)}>{about.title}</button>}</td>
                  </tr>
                );
              })}
            </tbody>
          ))}
        </table>
      )}
    </Answered>
  );
}

interface Entry {
  share: number;
  time: number;
  where: string;
  cause: string;
  most: string;
  rules: string[];
}

/** The rows of the table, whose columns are those of the stat. */
export function entries(table: Table): Entry[] {
  const at = (name: string, unit: string | null = null) => table.columns.findIndex((one) => one.name === name && (unit === null || one.unit === unit));
  const [share, spent, where, cause, most, rules] = [at("Time", "%"), at("Time", "ns"), at("Where"), at("Cause"), at("Most"), at("Rules")];
  return table.rows.map((row) => ({
    share: Number(row[share!]) / 100, time: Number(row[spent!]), where: String(row[where!]), cause: String(row[cause!]),
    most: String(row[most!] ?? ""), rules: String(row[rules!]).split(", "),
  }));
}

/** The rows of each GPU, and of each thread, in the order of the table. */
export function places(rows: Entry[]): [string, Entry[]][] {
  const own = new Map<string, Entry[]>();
  for (const row of rows) own.set(row.where, [...(own.get(row.where) ?? []), row]);
  return [...own];
}

/** The finding that costs most of those of some rules; else why there is none. */
export function judged(rules: string[], found: Findings): Finding | string {
  const price = (one: Finding) => one.estimate ?? one.bound ?? 0;
  const own = found.findings.filter((one) => rules.includes(one.rule)).sort((a, b) => price(b) - price(a));
  if (own[0] !== undefined) return own[0];
  const blind = found.notJudged.find((one) => rules.includes(one.rule));
  if (rules.some((rule) => found.silent.includes(rule))) return "looked at, nothing found";
  return blind === undefined ? "not judged: no rule looks at it" : `not judged: ${blind.why}`;
}
