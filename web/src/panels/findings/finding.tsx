/** One finding: its cause, its fix, when it does not apply, and rows that jump to the timeline. */
import type { Evidence, Finding } from "../../data/types";
import { Bar } from "../parts/drawing/bar";
import { goTo, goToSpan } from "../parts/jump";
import { SafeLink } from "../parts/link";
import { count, percent, time } from "../parts/table/units";
import { shares } from "./ranking";
import { Severity } from "./severity";
import { Name } from "../parts/name";

interface Props {
  finding: Finding;
  report: number;
  span: number;
}

export function FindingDetails({ finding, report, span }: Props) {
  const part = shares(finding, span);
  return (
    <article class="p-finding-details" aria-label={finding.title}>
      <h3>
        <Severity of={finding.severity} /> <Name text={finding.title} most={2000} />
      </h3>
      <div class="p-finding-parts">
        <div>
          {part && (
            <p class="p-finding-price">
              <Bar share={part.share} most={part.most} label="Of the run" />
              <span>{priced(finding, span)}</span>
            </p>
          )}
          <p><b>Cause</b> <span class="p-lines">{finding.cause}</span></p>
          <p>
            <b>Fix</b> <span class="p-lines">{finding.fix}</span> <SafeLink href={finding.link}>How this works</SafeLink>
          </p>
          {finding.wrongWhen && <p class="p-dim"><b>Limits</b> {finding.wrongWhen}</p>}
          <p class="p-dim p-small">Rule {finding.rule}, {finding.confidence} confidence.</p>
        </div>
        <Rows finding={finding} report={report} />
      </div>
    </article>
  );
}

function priced(finding: Finding, span: number): string {
  const words: string[] = [];
  if (finding.estimate !== null) words.push(`Expected saving: ${time(finding.estimate)} (${percent(finding.estimate / span)} of the run)`);
  if (finding.bound !== null) words.push(`${words.length > 0 ? "at most" : "Costs at most"} ${time(finding.bound)} (${percent(finding.bound / span)})`);
  const both = finding.shared > 0 ? ` Other findings save ${time(finding.shared)} of it, too.` : "";
  return `${words.join(", ")}.${both}`;
}

function Rows({ finding, report }: { finding: Finding; report: number }) {
  if (finding.evidence.length === 0) return null;
  const jump = (row: Evidence) => {
    if (row.event) goTo(row.event);
    goToSpan(report, row.start, row.end);
  };
  const some = finding.occurrences > finding.evidence.length ? `, the ${finding.evidence.length} most expensive` : "";
  return (
    <div class="p-evidence">
      <h4>Seen {finding.occurrences === 1 ? "once" : `${count(finding.occurrences)} times`}{some}</h4>
      <table class="p-rows" aria-label="Evidence">
        <thead>
          <tr><th scope="col">At</th><th scope="col">For</th><th scope="col">What</th></tr>
        </thead>
        <tbody>
          {finding.evidence.map((row, i) => (
            <tr key={i}>
              <td>
                <button type="button" class="p-jump" title="Show on the timeline and mark its time" onClick={() => jump(row)}>{time(row.start)}</button>
              </td>
              <td class="p-number">{time(row.end - row.start)}</td>
              <td><Name text={row.text} most={1000} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
