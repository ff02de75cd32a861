/** The timeline: names of tracks at the left, their events on a canvas, the whole run above. */
import { effect } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { hidden, meta } from "../app/state";
import { count } from "../base/format";
import { follow } from "./input/follow";
import { listenKeys } from "./input/keys";
import { listen, scrollBy, scrollPinned } from "./input/pointer";
import { AXIS, heldHeight } from "./draw/frame";
import { headerWidth, layout, pinnedScroll, scroll, size } from "./local";
import { Events } from "./parts/events";
import { Headers } from "./parts/headers";
import { Minimap } from "./parts/minimap";
import { Splitter } from "./parts/splitter";
import { Tooltip } from "./parts/tooltip";
import { Stage } from "./stage";
import "./timeline.css";

export function Timeline() {
  const body = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const [stage, setStage] = useState<Stage | null>(null);

  // Not after the first paint: data may come before that.
  useLayoutEffect(() => {
    const made = new Stage(base.current!, over.current!);
    const measure = (): void => {
      const box = body.current!.getBoundingClientRect();
      size.value = { width: Math.floor(box.width), height: Math.floor(box.height), ratio: window.devicePixelRatio || 1 };
    };
    const observer = new ResizeObserver(measure);
    observer.observe(body.current!);
    measure();
    const scrollbar = bar.current!;
    const fromBar = (): void => void (scroll.value = scrollbar.scrollTop);
    scrollbar.addEventListener("scroll", fromBar);
    const ends = [
      listen(body.current!, made),
      listenKeys(made),
      follow(),
      effect(() => {
        if (Math.abs(scrollbar.scrollTop - scroll.value) >= 1) scrollbar.scrollTop = scroll.value;
      }),
      // Fewer rows, or a higher window: never scrolled beyond the end.
      effect(() => {
        void [layout.value, size.value];
        queueMicrotask(() => scrollBy(0));
      }),
    ];
    setStage(made);
    return () => {
      observer.disconnect();
      scrollbar.removeEventListener("scroll", fromBar);
      for (const end of ends) end();
      made.close();
    };
  }, []);

  const held = heldHeight(layout.value, size.value.height);
  const onWheel = (event: WheelEvent): void => {
    if (event.ctrlKey || event.metaKey) return;
    scrollBy(event.deltaY * (event.deltaMode === 1 ? 16 : 1));
  };
  return (
    <section class="timeline" aria-label="Timeline" style={{ "--tl-headers": `${headerWidth.value}px` }}>
      <div class="tl-above">
        <div class="tl-corner"><Hidden /></div>
        <Minimap />
      </div>
      <div class="tl-main">
        <div class="tl-headers" onWheel={onWheel}>
          <div class="tl-axis" style={{ height: `${AXIS}px` }}><Totals /></div>
          <div class="tl-zone tl-pinned" onScroll={(event) => adopt(event.currentTarget, scrollPinned)} style={{ height: `${held}px` }}>
            <div style={{ transform: `translateY(${-pinnedScroll.value}px)` }}><Headers pinned from={0} to={Infinity} /></div>
          </div>
          <div class="tl-zone" onScroll={(event) => adopt(event.currentTarget, scrollBy)}>
            <Scrolled />
          </div>
        </div>
        <Splitter />
        <div ref={body} class="tl-body" tabIndex={-1} role="img" aria-label="Events on the tracks over time; the list after this has the longest ones">
          <canvas ref={base} aria-hidden="true" />
          <canvas ref={over} aria-hidden="true" />
          <Tooltip stage={stage} />
        </div>
        <div ref={bar} class="tl-scrollbar" tabIndex={-1} aria-hidden="true"><div style={{ height: `${layout.value.main.height + held + AXIS}px` }} /></div>
      </div>
      <Events stage={stage} />
    </section>
  );
}

/** The browser scrolled the names by itself, to what has the focus or was found by its own search: the rows beside them go along. */
function adopt(zone: HTMLElement, by: (pixels: number) => void): void {
  const moved = zone.scrollTop;
  if (moved === 0) return;
  zone.scrollTop = 0;
  by(moved);
}

/** Its own component: only this moves while one scrolls. */
function Scrolled() {
  const step = 200;
  const near = Math.floor(scroll.value / step) * step;
  return (
    <div class="tl-scrolled" style={{ transform: `translateY(${-scroll.value}px)` }}>
      <Headers pinned={false} from={near - step} to={near + size.value.height + 2 * step} />
    </div>
  );
}

function Hidden() {
  const many = hidden.value.size;
  return many === 0 ? null : (
    <button type="button" class="tl-show" title="Show the hidden tracks again" onClick={() => (hidden.value = new Set())}>{many} hidden · show</button>
  );
}

function Totals() {
  const events = (meta.value?.reports ?? []).reduce((sum, one) => sum + one.events, 0);
  return <span class="tl-detail">{layout.value.main.rows.length} rows · {count(events)} events</span>;
}
