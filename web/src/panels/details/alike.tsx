/** All events of the same name: how many, how long, how spread, and the longest of them. */
import { source } from "../../app/state";
import type { Alike, Located } from "../../data/types";
import { Answered, useAnswer } from "../parts/answer";
import { Histogram } from "../parts/drawing/histogram";
import { goTo } from "../parts/jump";
import { generation } from "../parts/report";
import { Section } from "../parts/section";
import { count, time } from "../parts/table/units";

export function AlikeSection({ event }: { event: Located }) {
  const from = source.value;
  const about = `${event.report} ${event.table} ${event.process} ${event.row}`;
  const answer = useAnswer(from && (() => from.alike(event)), [about, from, generation(event.report)]);
  return (
    <Section title="All like this">
      <Answered of={answer} what="all like this">
        {(alike) => <Shown alike={alike} event={event} />}
      </Answered>
    </Section>
  );
}

function Shown({ alike, event }: { alike: Alike; event: Located }) {
  const figures: [string, number][] = [["Total", alike.total], ["Median", alike.median], ["Min", alike.minimum], ["P99", alike.p99], ["Max", alike.maximum]];
  return (
    <>
      <dl class="p-fields p-figures">
        <div><dt>Count</dt><dd>{count(alike.count)}</dd></div>
        {figures.map(([name, value]) => <div key={name}><dt>{name}</dt><dd title={`${value} ns`}>{time(value)}</dd></div>)}
      </dl>
      {alike.counts.length > 1 && <Histogram edges={alike.edges} counts={alike.counts} at={event.duration} />}
      {alike.longest.length > 0 && (
        <>
          <h4>The longest</h4>
          <ol class="p-links">
            {alike.longest.map((one) => (
              <li key={`${one.process} ${one.row}`}>
                <button type="button" class="p-jump" aria-current={one.row === event.row && one.process === event.process} onClick={() => goTo(one)}>{time(one.duration)}</button>
                <span class="p-dim"> at {time(one.start)}</span>
              </li>
            ))}
          </ol>
        </>
      )}
    </>
  );
}
