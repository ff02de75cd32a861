/** Mouse, wheel and touch pad on the canvas. */
import { everything, mark, select, show } from "../../app/actions";
import { hovered, marks, notice, offsets, ranges, source, view } from "../../app/state";
import type { Span } from "../../data/source";
import { AXIS, heldHeight } from "../draw/frame";
import { fitEvent, fitTo, hold, ordered, panBy, wheelFactor, zoomAt } from "../layout/navigate";
import { focusedRow, layout, pinnedScroll, pointer, scroll, size } from "../local";
import type { Stage } from "../stage";
import { eventOf, snapped, timeAt, under } from "./hits";

/** A press that moves less than this is a click. CSS pixels. */
const STILL = 4;
/** An edge of a range is taken hold of from so far. */
const GRIP = 5;

interface Drag {
  kind: "press" | "pan" | "range";
  x: number;
  y: number;
  lastX: number;
  lastY: number;
  /** The other end of a range. */
  anchor: number;
  /** The range that is changed, where it is not a new one. */
  index: number | null;
  /** A second range beside the first. */
  compare: boolean;
}

/** Moves the view, but never where nothing is to be seen. */
export function go(span: Span): void {
  show(hold(span, everything()));
}

/** Height of the rows that scroll, CSS pixels. */
export function roomOfRows(): number {
  return size.value.height - AXIS - heldHeight(layout.value, size.value.height);
}

export function scrollBy(pixels: number): void {
  scroll.value = Math.min(Math.max(scroll.value + pixels, 0), Math.max(layout.value.main.height - roomOfRows(), 0));
}

export function scrollPinned(pixels: number): void {
  const room = heldHeight(layout.value, size.value.height);
  pinnedScroll.value = Math.min(Math.max(pinnedScroll.value + pixels, 0), Math.max(layout.value.pinned.height - room, 0));
}

/** The range whose edge is at x, and its other edge. */
function gripped(x: number): { index: number; anchor: number } | null {
  const grain = (view.value.end - view.value.begin) / Math.max(size.value.width, 1);
  const time = timeAt(x);
  for (const [index, range] of ranges.value.entries()) {
    if (Math.abs(range.begin - time) <= GRIP * grain) return { index, anchor: range.end };
    if (Math.abs(range.end - time) <= GRIP * grain) return { index, anchor: range.begin };
  }
  return null;
}

export function listen(body: HTMLElement, stage: Stage): () => void {
  let drag: Drag | null = null;
  const at = (event: MouseEvent): { x: number; y: number } => {
    const box = body.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  const down = (event: PointerEvent): void => {
    if (event.button > 1) return;
    const { x, y } = at(event);
    const pan = event.button === 1 || event.shiftKey || y < AXIS;
    const grip = pan && y >= AXIS ? null : gripped(x);
    const anchor = grip?.anchor ?? (event.altKey ? timeAt(x) : snapped(stage.store, stage.windows(), x, y));
    drag = {
      kind: grip !== null ? "range" : pan ? "pan" : "press", x, y, lastX: x, lastY: y, anchor, index: grip?.index ?? null, compare: event.ctrlKey || event.metaKey,
    };
    body.setPointerCapture(event.pointerId);
    event.preventDefault();
    body.focus({ preventScroll: true });
  };

  const move = (event: PointerEvent): void => {
    const { x, y } = at(event);
    pointer.value = { x, y };
    if (drag === null) {
      const found = under(stage.store, stage.windows(), x, y);
      hovered.value = found.hit === null ? null : eventOf(found.hit);
      body.style.cursor = gripped(x) !== null ? "ew-resize" : y < AXIS ? "grab" : found.hit !== null || stage.targetAt(x, y) !== null ? "pointer" : "default";
      return;
    }
    if (drag.kind === "press" && Math.hypot(x - drag.x, y - drag.y) > STILL) drag.kind = "range";
    if (drag.kind === "pan") {
      go(panBy(view.value, (drag.lastX - x) / Math.max(size.value.width, 1)));
      if (drag.y >= AXIS) scrollBy(drag.lastY - y);
      body.style.cursor = "grabbing";
    } else if (drag.kind === "range") {
      // Beyond an edge the view comes along.
      const out = x < 0 ? x : x > size.value.width ? x - size.value.width : 0;
      if (out !== 0) go(panBy(view.value, (out / Math.max(size.value.width, 1)) * 0.3));
      const own = drag.index === null ? null : (ranges.value[drag.index] ?? null);
      const time = event.altKey ? timeAt(x) : snapped(stage.store, stage.windows(), x, y, own ?? ranges.value.at(-1) ?? null);
      const span = ordered(drag.anchor, time);
      const { index } = drag;
      if (index !== null) ranges.value = ranges.value.map((one, place) => (place === index ? span : one));
      else mark(span, drag.compare);
      body.style.cursor = "ew-resize";
    }
    drag.lastX = x;
    drag.lastY = y;
  };

  const up = (event: PointerEvent): void => {
    const was = drag;
    drag = null;
    body.style.cursor = "default";
    if (was?.kind === "press") void click(at(event).x, at(event).y);
  };

  const click = async (x: number, y: number): Promise<void> => {
    const target = stage.targetAt(x, y);
    if (target !== null) {
      select(target, true);
      return;
    }
    const found = under(stage.store, stage.windows(), x, y);
    focusedRow.value = found.row?.key ?? null;
    if (found.hit === null) {
      select(null);
      return;
    }
    const event = eventOf(found.hit);
    if (found.hit.run.rects.slices[found.hit.index] === 1) {
      select(event);
      return;
    }
    // The rectangle stands for several: the longest of them is meant, and where it lies its details say.
    try {
      const details = await source.value?.event(event);
      if (details !== undefined) select({ ...event, ...details.event });
    } catch (error) {
      notice.value = error instanceof Error ? error.message : String(error);
    }
  };

  const fit = (event: MouseEvent): void => {
    const { x, y } = at(event);
    if (y < AXIS) return go(everything());
    const found = under(stage.store, stage.windows(), x, y);
    if (found.hit !== null) {
      const { rects } = found.hit.run;
      const offset = offsets.value[found.row?.report ?? 0] ?? 0;
      go(fitEvent(view.value, rects.start[found.hit.index]! + offset, rects.duration[found.hit.index]!));
      return;
    }
    const range = ranges.value.find((one) => one.begin <= found.time && found.time <= one.end);
    if (range !== undefined) go(fitTo(range));
  };

  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? size.value.height : 1;
    const { x, y } = at(event);
    const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) go(zoomAt(view.value, timeAt(x), wheelFactor(event.deltaY * unit)));
    else if (event.shiftKey || Math.abs(across) > Math.abs(event.deltaY)) go(panBy(view.value, (across * unit) / Math.max(size.value.width, 1)));
    else if (y < AXIS) go(zoomAt(view.value, timeAt(x), wheelFactor(event.deltaY * unit)));
    else if (y < AXIS + heldHeight(layout.value, size.value.height)) scrollPinned(event.deltaY * unit);
    else scrollBy(event.deltaY * unit);
  };

  const leave = (): void => {
    if (drag !== null) return;
    pointer.value = null;
    hovered.value = null;
  };

  const listeners: [string, (event: never) => void, AddEventListenerOptions?][] = [
    ["pointerdown", down], ["pointermove", move], ["pointerup", up], ["pointercancel", () => (drag = null)], ["pointerleave", leave], ["dblclick", fit],
    ["wheel", wheel, { passive: false }],
  ];
  for (const [name, listener, options] of listeners) body.addEventListener(name, listener as EventListener, options);
  return () => {
    for (const [name, listener] of listeners) body.removeEventListener(name, listener as EventListener);
  };
}

/** Sets a mark at a time, named by its number. */
export function addMark(time: number): void {
  marks.value = [...marks.value, { time, label: String(marks.value.length + 1) }];
}
