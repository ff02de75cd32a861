/** The whole run above the timeline: how busy GPU and CPU were, and the visible window, which can be dragged. */
import { useEffect, useRef } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import { everything } from "../../app/actions";
import { marks, meta, offsets, ranges, source, trees, view } from "../../app/state";
import { busyOf, sidesOf, usedOf } from "../data/overview";
import { css, mix } from "../../base/rgb";
import { DARK, LIGHT } from "../../base/canvas";
import { font } from "../draw/frame";
import { go } from "../input/pointer";
import { ordered } from "../layout/navigate";
import { answered, overviewed, size } from "../local";
import { isDark } from "./dark";

/** Columns asked for, and rectangles at most. */
const COLUMNS = 800;
const MOST = 20_000;
/** CSS pixels. */
export const HEIGHT = 38;
const GRIP = 5;

interface Overview {
  report: number;
  begin: number;
  end: number;
  gpu: Float32Array | null;
  cpu: Float32Array | null;
  /** What the top of the strip of CPUs stands for; 0: all of the time of one thread. */
  cpus: number;
}

const overviews = signal<readonly Overview[]>([]);

async function load(): Promise<Overview[]> {
  const from = source.peek();
  if (from === null) return [];
  return Promise.all(
    (meta.peek()?.reports ?? []).map(async ({ report, begin, end, generation }) => {
      const sides = sidesOf(trees.peek()[report] ?? []);
      const tracks = [...sides.gpu.values(), ...sides.cpu.values()].flat().map((one) => one.track);
      if (tracks.length + sides.used.length === 0 || !(end > begin)) return { report, begin, end, gpu: null, cpu: null, cpus: 0 };
      const query = { report, begin, end, width: COLUMNS, limit: MOST, generation };
      const [rects, plots] = await Promise.all([
        tracks.length > 0 ? from.viewport({ ...query, tracks }) : null,
        sides.used.length > 0 ? from.plots({ ...query, tracks: sides.used.map((one) => one.track) }) : [],
      ]);
      const busy = (side: typeof sides.gpu): Float32Array | null => (side.size === 0 || rects === null ? null : busyOf(rects, side, COLUMNS));
      if (plots.length === 0) return { report, begin, end, gpu: busy(sides.gpu), cpu: busy(sides.cpu), cpus: 0 };
      const used = usedOf(plots, begin, end, COLUMNS);
      const cpus = Math.max(...used, 1);
      return { report, begin, end, gpu: busy(sides.gpu), cpu: used.map((one) => one / cpus), cpus };
    }),
  );
}

/** How busy both sides were, which no pan and no zoom changes. */
function paintStrips(canvas: HTMLCanvasElement): void {
  const { ratio } = size.value;
  const context = canvas.getContext("2d", { alpha: false })!;
  const theme = isDark.value ? DARK : LIGHT;
  context.fillStyle = css(theme.raised);
  context.fillRect(0, 0, canvas.width, canvas.height);
  const whole = everything();
  const perNs = canvas.width / Math.max(whole.end - whole.begin, 1);
  const strips = overviews.value.flatMap((one) => [
    ...(one.gpu === null ? [] : [{ one, busy: one.gpu, name: "GPU", color: theme.kinds["compute"]! }]),
    ...(one.cpu === null ? [] : [{ one, busy: one.cpu, name: one.cpus > 0 ? `CPU ${one.cpus.toFixed(1)}` : "CPU", color: theme.kinds["range"]! }]),
  ]);
  const high = canvas.height / Math.max(strips.length, 1);
  strips.forEach(({ one, busy, name, color }, place) => {
    const left = (one.begin + (offsets.value[one.report] ?? 0) - whole.begin) * perNs;
    const wide = ((one.end - one.begin) * perNs) / busy.length;
    const bottom = Math.round((place + 1) * high) - 1;
    const room = Math.round(high) - 3;
    context.fillStyle = css(mix(color, theme.ground, theme.dark ? 0.75 : 0.9));
    busy.forEach((share, column) => {
      const tall = share <= 0 ? 0 : Math.max(Math.round(share * room), 1);
      const x = Math.round(left + column * wide);
      if (tall > 0) context.fillRect(x, bottom - tall, Math.max(Math.round(left + (column + 1) * wide) - x, 1), tall);
    });
    context.font = font(ratio, 9);
    context.textBaseline = "top";
    context.fillStyle = css(theme.raised);
    context.fillRect(0, bottom - room, context.measureText(name).width + Math.round(7 * ratio), Math.round(11 * ratio));
    context.fillStyle = css(theme.ink);
    context.fillText(name, 4 * ratio, bottom - room + ratio);
  });
}

function fit(canvas: HTMLCanvasElement): void {
  const { width, ratio } = size.value;
  canvas.width = Math.max(Math.round(width * ratio), 1);
  canvas.height = Math.round(HEIGHT * ratio);
}

function paint(canvas: HTMLCanvasElement, strips: HTMLCanvasElement): void {
  const { ratio } = size.value;
  const context = canvas.getContext("2d", { alpha: false })!;
  const theme = isDark.value ? DARK : LIGHT;
  context.drawImage(strips, 0, 0);
  const whole = everything();
  const perNs = canvas.width / Math.max(whole.end - whole.begin, 1);
  const x = (time: number): number => Math.round((time - whole.begin) * perNs);
  context.fillStyle = theme.accent;
  for (const range of ranges.value) context.fillRect(x(range.begin), 0, Math.max(x(range.end) - x(range.begin), 1), Math.round(3 * ratio));
  context.fillStyle = theme.second;
  for (const mark of marks.value) context.fillRect(x(mark.time), 0, Math.max(Math.round(ratio), 1), canvas.height);
  const begin = x(view.value.begin);
  const end = Math.max(x(view.value.end), begin + Math.round(3 * ratio));
  context.fillStyle = theme.dark ? "rgba(0, 0, 0, 0.5)" : "rgba(70, 80, 95, 0.22)";
  context.fillRect(0, 0, begin, canvas.height);
  context.fillRect(end, 0, canvas.width - end, canvas.height);
  context.fillStyle = theme.cursor;
  context.fillRect(Math.max(begin, 0), 0, Math.max(Math.round(1.5 * ratio), 1), canvas.height);
  context.fillRect(Math.min(end, canvas.width) - Math.max(Math.round(1.5 * ratio), 1), 0, Math.max(Math.round(1.5 * ratio), 1), canvas.height);
}

function listen(canvas: HTMLCanvasElement): () => void {
  let drag: { kind: "move" | "begin" | "end" | "new"; time: number; x: number } | null = null;
  const perPixel = (): number => (everything().end - everything().begin) / Math.max(canvas.clientWidth, 1);
  const timeOf = (event: PointerEvent): number => everything().begin + (event.clientX - canvas.getBoundingClientRect().left) * perPixel();
  const kindOf = (time: number): "move" | "begin" | "end" | "new" => {
    const reach = GRIP * perPixel();
    const { begin, end } = view.value;
    const isAll = end - begin > (everything().end - everything().begin) * 0.98;
    if (end - begin > 4 * reach && !isAll) {
      if (Math.abs(time - begin) < reach) return "begin";
      if (Math.abs(time - end) < reach) return "end";
    }
    return time > begin - reach && time < end + reach && !isAll ? "move" : "new";
  };
  const down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const time = timeOf(event);
    drag = { kind: kindOf(time), time, x: event.clientX };
    canvas.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    const time = timeOf(event);
    if (drag === null) {
      canvas.style.cursor = { move: "grab", begin: "ew-resize", end: "ew-resize", new: "crosshair" }[kindOf(time)];
      return;
    }
    const { begin, end } = view.value;
    if (drag.kind === "move") go({ begin: begin + time - drag.time, end: end + time - drag.time });
    else if (drag.kind === "begin") go(ordered(time, end));
    else if (drag.kind === "end") go(ordered(begin, time));
    else if (Math.abs(event.clientX - drag.x) > 3) go(ordered(drag.time, time));
    if (drag.kind !== "new") drag.time = time;
  };
  const up = (event: PointerEvent): void => {
    const was = drag;
    drag = null;
    // A click beside the window brings it there.
    if (was?.kind === "new" && Math.abs(event.clientX - was.x) <= 3) {
      const half = (view.value.end - view.value.begin) / 2;
      go({ begin: was.time - half, end: was.time + half });
    }
  };
  const all = (): void => go(everything());
  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("dblclick", all);
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
    canvas.removeEventListener("dblclick", all);
  };
}

export function Minimap() {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let asked = 0;
    let newest = 0;
    let isNew = true;
    const strips = document.createElement("canvas");
    const soon = (): void => {
      if (asked === 0) asked = requestAnimationFrame(draw);
    };
    const draw = (): void => {
      asked = 0;
      if (canvas.current === null) return;
      if (isNew) {
        isNew = false;
        for (const one of [canvas.current, strips]) fit(one);
        paintStrips(strips);
      }
      paint(canvas.current, strips);
    };
    const ends = [
      listen(canvas.current!),
      effect(() => {
        void [source.value, meta.value, trees.value];
        // What is seen comes first.
        if (!answered.value) return;
        const number = (newest += 1);
        void load().then((all) => number === newest && (overviews.value = all), () => undefined).finally(() => (overviewed.value = true));
      }),
      effect(() => {
        void [overviews.value, meta.value, size.value, offsets.value, isDark.value];
        isNew = true;
        soon();
      }),
      effect(() => {
        void [view.value, ranges.value, marks.value];
        soon();
      }),
    ];
    return () => {
      cancelAnimationFrame(asked);
      for (const end of ends) end();
    };
  }, []);
  return <canvas ref={canvas} class="tl-minimap" role="img" aria-label="The whole recording: busy share of GPUs, and CPUs used. Drag to choose the visible part." />;
}
