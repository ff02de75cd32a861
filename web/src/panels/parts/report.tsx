/** Chooses the report that the panels show, if two are open. */
import { signal } from "@preact/signals";
import { meta } from "../../app/state";

/** The number of the report that panels show. */
export const panelReport = signal(0);

/** Changes when a running capture was refreshed: panels ask again. */
export function generation(report: number): number {
  return meta.value?.reports.find((one) => one.report === report)?.generation ?? 0;
}

/** A select, or nothing where there is one report. */
export function ReportChoice() {
  const reports = meta.value?.reports ?? [];
  if (reports.length < 2) return null;
  return (
    <label class="p-choice">
      Report{" "}
      <select value={panelReport.value} onChange={(event) => (panelReport.value = Number(event.currentTarget.value))}>
        {reports.map((one) => (
          <option key={one.report} value={one.report}>
            {one.report === 0 ? "A" : "B"}: {one.name}
          </option>
        ))}
      </select>
    </label>
  );
}
