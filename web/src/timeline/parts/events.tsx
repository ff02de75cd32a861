/** The events of the focused row as a list for screen readers and arrow keys; the canvas draws them. */
import { useEffect, useState } from "preact/hooks";
import { count, time } from "../../base/format";
import { later } from "../../base/dom";
import { visible } from "../../base/text";
import { select } from "../../app/actions";
import { offsets, view } from "../../app/state";
import { type Listed, biggest } from "../data/biggest";
import { fitSelection, reveal } from "../input/keys";
import { timeLabel } from "../layout/ticks";
import { arrivals, focusedEvent, focusedRow, layout } from "../local";
import type { Stage } from "../stage";

/** Moving the view makes a new list once it rests, ms. */
const REST = 200;

export function describeEvent({ event, slices }: Listed): string {
  const name = visible(event.name, 160);
  const when = `${time(event.duration)} from ${timeLabel(event.start + (offsets.value[event.report] ?? 0))}`;
  return slices > 1 ? `${count(slices)} events, longest ${name}, ${when}` : `${name}, ${when}`;
}

function isOne(a: Listed, b: Listed | undefined): boolean {
  return b !== undefined && a.event.track === b.event.track && a.event.lane === b.event.lane && a.event.row === b.event.row;
}

/** A walk through the events of a row. */
interface Walk {
  of: string | null;
  list: Listed[];
  at: number;
}

export function Events({ stage }: { stage: Stage | null }) {
  const key = focusedRow.value;
  const [made, set] = useState<Walk>({ of: key, list: [], at: 0 });
  // Of another row: keys must not select its events.
  const { list, at }: Omit<Walk, "of"> = made.of === key ? made : { list: [], at: 0 };
  const row = [...layout.value.pinned.rows, ...layout.value.main.rows].find((one) => one.key === key);
  const { begin, end } = view.value;
  const came = arrivals.value;
  useEffect(() => {
    const make = (): void => {
      const offset = row === undefined ? 0 : (offsets.value[row.report] ?? 0);
      const next = stage === null || row === undefined ? [] : biggest(stage.store, row, { begin: begin - offset, end: end - offset });
      // A selected event stays selected.
      set((before) => ({ of: key, list: next, at: Math.max(next.findIndex((one) => isOne(one, before.list[before.at])), 0) }));
    };
    if (made.of !== key) return make();
    const refresh = later(make, REST);
    refresh();
    return refresh.cancel;
  }, [stage, key, begin, end, came]);

  const go = (index: number): void => {
    const one = list[Math.min(Math.max(index, 0), list.length - 1)];
    if (one === undefined) return;
    set({ of: key, list, at: list.indexOf(one) });
    focusedEvent.value = one.event;
    reveal(one.event.start + (offsets.value[one.event.report] ?? 0), one.event.duration);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowRight" || event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(list.length - 1);
    else if (event.key === "Enter" || event.key === " ") select(list[at]?.event ?? null);
    else if (event.key === "f" && list[at] !== undefined) {
      select(list[at].event);
      fitSelection();
    } else if (event.key === "Escape") document.querySelector<HTMLElement>(".tl-tree [tabindex='0']")?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const name = row === undefined ? "no track" : visible(row.node.name, 120);
  return (
    <div
      class="tl-events tl-heard" role="listbox" tabIndex={0} aria-label={`Longest events in view of ${name}. Arrow keys move, Enter selects, F fits.`}
      {...(list[at] === undefined ? {} : { "aria-activedescendant": `tl-event-${at}` })}
      onKeyDown={onKey} onFocus={() => go(at)} onBlur={() => (focusedEvent.value = null)}
    >
      {list.map((one, index) => (
        <div key={`${one.event.track}/${one.event.lane}/${one.event.row}`} id={`tl-event-${index}`} role="option" aria-selected={index === at}>
          {describeEvent(one)}
        </div>
      ))}
    </div>
  );
}
