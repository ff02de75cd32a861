/** Loads the details of the selection: one request per selection, late answers dropped. The timeline draws arrows from the same answer. */
import { effect, signal } from "@preact/signals";
import { details, selected, source } from "../../app/state";
import type { EventRef } from "../../data/types";
import { generation } from "../parts/report";

/** Why the details of what is selected are not there; null where they are, or come. */
export const detailsFailed = signal<string | null>(null);
const turn = signal(0);

/** Ask once more. */
export function loadAgain(): void {
  turn.value++;
}

function same(a: EventRef | null, b: EventRef | null): boolean {
  return a !== null && b !== null && a.report === b.report && a.table === b.table && a.process === b.process && a.row === b.row;
}

/** Start following; returns what stops it. */
export function followSelection(): () => void {
  return effect(() => {
    const [from, event] = [source.value, selected.value];
    void turn.value;
    // Of the same event the old answer stays until the new one is there: a live report asks every second.
    if (!same(details.peek()?.event ?? null, event)) details.value = null;
    detailsFailed.value = null;
    if (from === null || event === null) return;
    void generation(event.report); // the rows of a live report may come later than its rectangles
    let current = true;
    from.event({ report: event.report, table: event.table, process: event.process, row: event.row }).then(
      (answer) => {
        if (current) details.value = answer;
      },
      (error: unknown) => {
        if (current) detailsFailed.value = error instanceof Error ? error.message : String(error);
      },
    );
    return () => {
      current = false;
    };
  });
}
