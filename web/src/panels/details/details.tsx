/** The sidebar: all facts about the selected event, and links to related events. */
import { useSignal } from "@preact/signals";
import { mark, select } from "../../app/actions";
import { details, found, selected } from "../../app/state";
import type { EventDetails, Located } from "../../data/types";
import { goTo, goToSpan, onAxis } from "../parts/jump";
import { time } from "../parts/table/units";
import { search } from "../search/searching";
import { AlikeSection } from "./alike";
import { Fields } from "./fields";
import { Links } from "./links";
import { detailsFailed, loadAgain } from "./loading";
import { Payload } from "./payload";
import { Stack } from "./stack";
import { Name } from "../parts/name";

export function Details() {
  const folded = useSignal(false);
  const event = selected.value;
  if (folded.value) {
    return (
      <aside class="p-details p-folded" aria-label="Details">
        <button type="button" aria-label="Show details" title="Show details" aria-expanded="false" onClick={() => (folded.value = false)}>‹</button>
      </aside>
    );
  }
  return (
    <aside class="p-details" aria-label="Details">
      <div class="p-bar">
        <h2>Details</h2>
        <span class="p-space" />
        {event && <button type="button" aria-label="Clear the selection" title="Clear the selection" onClick={() => select(null)}>✕</button>}
        <button type="button" aria-label="Hide details" title="Hide details" aria-expanded="true" onClick={() => (folded.value = true)}>›</button>
      </div>
      {event === null ? <Nothing /> : <Something key={`${event.report} ${event.table} ${event.process} ${event.row}`} event={event} all={details.value} />}
    </aside>
  );
}

function Nothing() {
  return (
    <div class="p-said p-empty">
      <p>Nothing is selected.</p>
      <p>Click an event on the timeline, or move to it with Tab and the arrow keys. Drag to mark a range of time.</p>
    </div>
  );
}

function Something({ event, all }: { event: Located; all: EventDetails | null }) {
  const shown = all?.event ?? event;
  const range = () => mark({ begin: onAxis(shown.report, shown.start), end: onAxis(shown.report, shown.start + shown.duration) });
  return (
    <div class="p-details-body" aria-live="polite" aria-busy={all === null && detailsFailed.value === null}>
      {all && all.parents.length > 0 && <Parents of={all.parents} />}
      <h3><Name text={all?.title ?? event.name} most={2000} /></h3>
      <p class="p-buttons">
        <button type="button" onClick={() => goToSpan(shown.report, shown.start, shown.start + shown.duration, false)}>Zoom to it</button>
        <button type="button" disabled={shown.duration <= 0} onClick={range}>Mark its time</button>
        <button type="button" aria-pressed={found.value?.text === shown.name} onClick={() => void search(shown.name, false)}>Find all</button>
      </p>
      {detailsFailed.value !== null && (
        <div class="p-said p-failed" role="alert">
          <p>Its details could not be loaded: {detailsFailed.value}</p>
          <button type="button" onClick={loadAgain}>Try again</button>
        </div>
      )}
      {all === null && detailsFailed.value === null && <p class="p-said p-wait" role="status">Loading its details … It starts at {time(event.start)} and takes {time(event.duration)}.</p>}
      {all && (
        <>
          <Fields fields={all.fields} />
          {all.payload !== null && all.payload !== undefined && <Payload value={all.payload} />}
          <Links links={all.links} from={all.event} />
          <Stack frames={all.stack} />
          <AlikeSection event={all.event} />
        </>
      )}
    </div>
  );
}

function Parents({ of }: { of: Located[] }) {
  return (
    <nav class="p-parents" aria-label="Enclosing ranges, outermost first">
      <ol>
        {of.map((one) => (
          <li key={`${one.table} ${one.process} ${one.row}`}>
            <button type="button" title={`${time(one.duration)} from ${time(one.start)}`} onClick={() => goTo(one)}><Name text={one.name} most={200} /></button>
          </li>
        ))}
      </ol>
    </nav>
  );
}
