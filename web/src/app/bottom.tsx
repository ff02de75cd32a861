/** The panels below the timeline: their tabs are always visible, the open one has a height that can be dragged. */
import { effect, signal } from "@preact/signals";
import { kept, whenIdle } from "../base/dom";
import { time } from "../base/format";
import { panels } from "../panels";
import type { components } from "../panels/all";
import { answered } from "../timeline/local";
import { Guarded } from "./guarded";
import { notice, panel, ranges } from "./state";

const LEAST = 80;
/** Of the open panel, CSS pixels. */
export const height = signal(Number(kept.get("panel-height")) || usual());

const shown = signal<typeof components | null>(null);

effect(() => {
  if (answered.value && shown.peek() === null) whenIdle(() => void load());
});

async function load(): Promise<void> {
  try {
    shown.value = (await import("../panels/all")).components;
  } catch {
    notice.value = "The panels could not be loaded. Is `warplens view` still running? Then reload the page.";
  }
}

function usual(): number {
  return Math.min(Math.max(Math.round(window.innerHeight * 0.28), 160), 300);
}

function resize(to: number): void {
  height.value = Math.round(Math.min(Math.max(to, LEAST), Math.max(window.innerHeight - 200, LEAST)));
  kept.set("panel-height", String(height.value));
}

export function Bottom() {
  const open = panels.find((one) => one.id === panel.value);
  const Content = open === undefined ? undefined : shown.value?.[open.id];
  return (
    <section class="bottom" aria-label="Panels">
      {open !== undefined && <Grip />}
      <Tabs />
      {open !== undefined && (
        <div class="bottom-body" id="panel" role="tabpanel" aria-labelledby={`tab-${open.id}`} style={{ height: `${height.value}px` }}>
          {Content !== undefined && <Guarded key={open.id} what="This panel"><Content /></Guarded>}
        </div>
      )}
    </section>
  );
}

function Tabs() {
  const chosen = panel.value;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = Math.max(panels.findIndex((one) => `tab-${one.id}` === document.activeElement?.id), 0);
    const next = panels[(at + step + panels.length) % panels.length];
    if (next === undefined) return;
    if (chosen !== null) panel.value = next.id;
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return (
    <div class="bottom-tabs">
      <div role="tablist" aria-label="Panels" onKeyDown={onKeyDown}>
        {panels.map((one, i) => (
          <button key={one.id} id={`tab-${one.id}`} type="button" role="tab" aria-selected={one.id === chosen} aria-controls={one.id === chosen ? "panel" : undefined}
            tabIndex={one.id === chosen || (chosen === null && i === 0) ? 0 : -1} title={`${one.title} (${one.key})`}
            onClick={() => (panel.value = one.id === chosen ? null : one.id)}>
            {one.title}
            {one.id === "selection" && one.id !== chosen && ranges.value.length > 0 && <span class="tab-news"> {ranges.value.map((range) => time(range.end - range.begin)).join(" | ")}</span>}
          </button>
        ))}
      </div>
      {chosen !== null && <button type="button" class="bottom-close" aria-label="Close the panel" title="Close the panel (b)" onClick={() => (panel.value = null)}>⌄</button>}
    </div>
  );
}

function Grip() {
  const down = (event: PointerEvent) => {
    const grip = event.currentTarget as HTMLElement;
    const from = event.clientY + height.value;
    const move = (moved: PointerEvent) => resize(from - moved.clientY);
    const up = () => grip.removeEventListener("pointermove", move);
    grip.setPointerCapture(event.pointerId);
    grip.addEventListener("pointermove", move);
    grip.addEventListener("lostpointercapture", up, { once: true });
    event.preventDefault();
  };
  const key = (event: KeyboardEvent) => {
    const by = event.key === "ArrowUp" ? 24 : event.key === "ArrowDown" ? -24 : 0;
    if (by === 0) return;
    event.preventDefault();
    resize(height.value + by);
  };
  return (
    <div class="grip" role="separator" aria-orientation="horizontal" aria-label="Height of the panel" aria-valuenow={height.value} aria-valuemin={LEAST} tabIndex={0}
      onPointerDown={down} onKeyDown={key} onDblClick={() => resize(usual())} />
  );
}
