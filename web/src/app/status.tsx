/** The line at the bottom: the last message, the visible time, how much is recorded and lost. */
import { useEffect } from "preact/hooks";
import { count, many, momentIn, time } from "../base/format";
import { visible } from "../base/text";
import { stale } from "./boot";
import { Legend } from "./legend";
import { meta, notice, panel, ranges, view } from "./state";

export function Status() {
  return (
    <footer class="status">
      <Said />
      <Legend />
      <Seen />
      <Recorded />
    </footer>
  );
}

/** How long a notice stays, ms. */
const NOTICED = 15_000;

function Said() {
  const said = notice.value;
  useEffect(() => {
    if (said === "") return;
    const timer = setTimeout(() => (notice.value = ""), NOTICED);
    return () => clearTimeout(timer);
  }, [said]);
  return <span class="notice" role="status" aria-live="polite">{visible(said, 500)}</span>;
}

function Seen() {
  const { begin, end } = view.value;
  const [range, other] = ranges.value;
  return (
    <>
      {range !== undefined && <button type="button" class="notes" title="Events in the marked range" onClick={() => (panel.value = "selection")}>marked {time(range.end - range.begin)}{other !== undefined && ` and ${time(other.end - other.begin)}`}</button>}
      <span title="Visible time">{momentIn(begin, end - begin)} – {momentIn(end, end - begin)} ({time(end - begin)})</span>
    </>
  );
}

function Recorded() {
  const reports = meta.value?.reports ?? [];
  const events = reports.reduce((sum, one) => sum + one.events, 0);
  const notes = reports.reduce((sum, one) => sum + one.diagnostics, 0);
  const lost = reports.some((one) => one.warnings > 0);
  const live = reports.some((one) => one.live);
  return (
    <>
      <span title="Events in all reports">{many(events, "event")}</span>
      {notes > 0 && (
        <button type="button" class={lost ? "notes lost" : "notes"} title={lost ? "Losses, and data that could not be recorded" : "How it was recorded; nothing was lost"} onClick={() => (panel.value = "diagnostics")}>
          {lost && <span aria-hidden="true">⚠ </span>}{count(notes)} {notes === 1 ? "note" : "notes"}
        </button>
      )}
      {live && <span class={stale.value ? "live stale" : "live"} title={stale.value ? "The server does not answer" : "The recording continues; the page follows it"}>{stale.value ? "waiting" : "live"}</span>}
    </>
  );
}
