/** Findings: costs, the largest first; each with its cause, its fix and its rows. */
import { signal } from "@preact/signals";
import { source } from "../../app/state";
import type { Finding, Findings } from "../../data/types";
import { Answered, Empty, useAnswer } from "../parts/answer";
import { Bar } from "../parts/drawing/bar";
import { goTo, goToSpan, lasting } from "../parts/jump";
import { remembered } from "../parts/remembered";
import { ReportChoice, generation, panelReport } from "../parts/report";
import { time } from "../parts/table/units";
import { FindingDetails } from "./finding";
import { Ledger } from "./ledger";
import { ranked, shares } from "./ranking";
import { Severity } from "./severity";
import { Name } from "../parts/name";

/** Ask and draw. */
export function FindingsPanel() {
  const from = source.value;
  const report = panelReport.value;
  const answer = useAnswer(from && (() => from.findings(report)), [report, from, generation(report)]);
  return (
    <Answered of={answer} what="the findings">
      {(found) => <Judged key={report} found={found} report={report} />}
    </Answered>
  );
}

function Judged({ found, report }: { found: Findings; report: number }) {
  const chosen = remembered(`findings ${report}`, () => signal(0));
  const list = ranked(found.findings);
  const one = list[Math.min(chosen.value, list.length - 1)];
  const span = lasting(report);
  const jump = (finding: Finding) => {
    const first = finding.evidence[0];
    if (first === undefined) return;
    if (first.event) goTo(first.event);
    goToSpan(report, first.start, first.end);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowDown: chosen.value + 1, ArrowUp: chosen.value - 1, Home: 0, End: list.length - 1 }[event.key];
    if (to !== undefined) {
      chosen.value = Math.min(Math.max(to, 0), list.length - 1);
      (event.currentTarget as HTMLElement).children[chosen.value]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && one) jump(one);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="p-findings">
      <div class="p-findings-list">
        <div class="p-bar">
          <h3>{list.length === 0 ? "No findings" : `${list.length} ${list.length === 1 ? "finding" : "findings"}`}</h3>
          <ReportChoice />
          <span class="p-dim">of a run of {time(span)}</span>
        </div>
        {list.length === 0 ? <Empty>The rules that could judge found nothing.</Empty> : (
          <ul role="listbox" tabIndex={0} aria-label="Findings, the most expensive first" aria-activedescendant={`finding-${chosen.value}`} onKeyDown={onKeyDown}>
            {list.map((finding, i) => (
              <Line key={`${finding.rule}\n${finding.subject}`} id={`finding-${i}`} finding={finding} span={span} selected={finding === one}
                onClick={() => (chosen.value = i)} onDblClick={() => jump(finding)} />
            ))}
          </ul>
        )}
        <Ledger found={found} report={report} onChoose={(finding) => (chosen.value = Math.max(list.indexOf(finding), 0))} />
        <Others found={found} />
      </div>
      {one && <FindingDetails key={`${one.rule}\n${one.subject}`} finding={one} report={report} span={span} />}
    </div>
  );
}

interface LineProps {
  id: string;
  finding: Finding;
  span: number;
  selected: boolean;
  onClick: () => void;
  onDblClick: () => void;
}

function Line({ id, finding, span, selected, onClick, onDblClick }: LineProps) {
  const part = shares(finding, span);
  return (
    <li id={id} role="option" aria-selected={selected} class="p-finding" onClick={onClick} onDblClick={onDblClick}>
      <Severity of={finding.severity} />
      <span class="p-finding-title"><Name text={finding.title} /></span>
      {part === null ? <span class="p-dim p-finding-cost">no cost in time</span> : (
        <span class="p-finding-cost">
          <Bar share={part.share} most={part.most} label="Of the run" />
          <span>{finding.estimate === null ? "≤ " : ""}{time(finding.estimate ?? finding.bound ?? 0)}</span>
        </span>
      )}
    </li>
  );
}

function Others({ found }: { found: Findings }) {
  return (
    <div class="p-findings-others">
      {found.notJudged.length > 0 && (
        <details>
          <summary>{found.notJudged.length} {found.notJudged.length === 1 ? "rule" : "rules"} could not be judged</summary>
          <dl>
            {found.notJudged.map((one) => (
              <div key={one.rule}>
                <dt>{one.rule}</dt>
                <dd>{one.why}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      {found.silent.length > 0 && (
        <details>
          <summary>{found.silent.length} {found.silent.length === 1 ? "rule" : "rules"} looked and found nothing</summary>
          <p>{found.silent.join(", ")}</p>
        </details>
      )}
    </div>
  );
}
