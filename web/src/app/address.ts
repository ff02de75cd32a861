/** Keeps the address and the state equal: small moves replace the history entry, large ones add one. */
import { effect } from "@preact/signals";
import { later } from "../base/dom";
import type { Span } from "../data/source";
import { search } from "../panels";
import { show, showAll } from "./actions";
import { colorBy, filter, found, groupBy, hidden, marks, meta, notice, offsets, order, panel, pinned, ranges, selected, source, toggled, view } from "./state";
import { usual } from "./boot";
import { type Place, elsewhere, read, write } from "./url";

/** ms without a change after which a place is one to come back to. */
const SETTLED = 350;

function here(): Place {
  const event = selected.value;
  return {
    view: view.value,
    offsets: offsets.value.every((one, report) => one === usual.value[report]) ? null : offsets.value,
    selected: event && { report: event.report, table: event.table, process: event.process, row: event.row },
    panel: panel.value,
    search: found.value && { text: found.value.text, regex: found.value.regex },
    filter: filter.value,
    groupBy: groupBy.value,
    colorBy: colorBy.value,
    ranges: ranges.value,
    marks: marks.value,
    toggled: [...toggled.value],
    pinned: [...pinned.value],
    hidden: [...hidden.value],
    order: Object.fromEntries(Object.entries(order.value).map(([parent, children]) => [parent, [...children]])),
  };
}

/** Take over what an address says. */
export function go(place: Place): void {
  if (place.offsets === null) offsets.value = usual.value;
  else if (place.offsets.length === meta.value?.reports.length) offsets.value = place.offsets;
  if (place.view === null) showAll();
  else show(place.view);
  if (place.panel !== undefined) panel.value = place.panel;
  filter.value = place.filter;
  groupBy.value = place.groupBy;
  colorBy.value = place.colorBy;
  ranges.value = place.ranges;
  marks.value = place.marks;
  toggled.value = new Set(place.toggled);
  pinned.value = place.pinned;
  hidden.value = new Set(place.hidden);
  order.value = place.order;
  if (place.search?.text !== found.value?.text || place.search?.regex !== found.value?.regex) void search(place.search?.text ?? "", place.search?.regex ?? false);
  void choose(place.selected);
}

async function choose(wanted: Place["selected"]): Promise<void> {
  const before = selected.value;
  if (wanted === null) {
    selected.value = null;
    return;
  }
  if (before !== null && before.report === wanted.report && before.table === wanted.table && before.process === wanted.process && before.row === wanted.row) return;
  if (!meta.value?.reports.some((one) => one.report === wanted.report)) return;
  try {
    const details = await source.value?.event(wanted);
    if (details !== undefined && selected.value === before) selected.value = details.event;
  } catch (error) {
    notice.value = `The event of this address does not exist: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Goes where the address leads, then writes down where people go; back and forward work. Returns what ends it. */
export function follow(window: Window): () => void {
  let last: Span = view.peek();
  const store = () => {
    const hash = `#${write(here())}`;
    if (hash === window.location.hash) return;
    const far = elsewhere(view.value, last);
    try {
      if (far) window.history.pushState(null, "", hash);
      else window.history.replaceState(null, "", hash);
    } catch {
      return; // Some browsers allow it a hundred times in half a minute, and no more.
    }
    last = view.value;
  };
  const soon = later(store, SETTLED);
  const back = () => {
    soon.cancel();
    const place = read(window.location.hash);
    go(place);
    last = view.value;
  };
  if (window.location.hash.length > 1) back();
  let first = true;
  const end = effect(() => {
    here();
    if (first) first = false;
    else soon();
  });
  const leaving = () => soon.flush();
  window.addEventListener("popstate", back);
  window.addEventListener("pagehide", leaving);
  return () => {
    end();
    soon.cancel();
    window.removeEventListener("popstate", back);
    window.removeEventListener("pagehide", leaving);
  };
}
