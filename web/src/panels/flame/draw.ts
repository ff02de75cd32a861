/** Paints boxes of flame graphs and tree maps: only fitting text, only visible boxes. */
import type { FlameNode } from "../../data/types";
import { colors, css, filled, inkOn, mix } from "../parts/drawing/color";
import { short } from "../../base/names";

export interface Rectangle {
  node: FlameNode;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Text is written in its first line; all of it where null. */
  title: number;
  /** Drawn paler: it is on the way to what is zoomed to. */
  above: boolean;
}

export interface Look {
  matches: ReadonlySet<FlameNode> | null;
  focus: FlameNode | null;
  hover: FlameNode | null;
}

const FONT = "11px system-ui, sans-serif";
const LETTER = 6.1; // about; what is near the limit is measured

/** Draw into a canvas of this size (CSS pixels). */
export function paint(canvas: HTMLCanvasElement, width: number, height: number, boxes: readonly Rectangle[], look: Look): void {
  const ratio = globalThis.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const on = canvas.getContext("2d");
  if (on === null) return;
  const scheme = colors();
  on.setTransform(ratio, 0, 0, ratio, 0, 0);
  on.clearRect(0, 0, width, height);
  on.font = FONT;
  on.textBaseline = "middle";
  for (const box of boxes) {
    if (box.width < 0.3 || box.y > height) continue;
    let fill = filled(box.node.name, scheme);
    if (box.above) fill = mix(fill, scheme.ground, 0.45);
    if (look.matches !== null && !look.matches.has(box.node)) fill = mix(fill, scheme.ground, 0.25);
    on.fillStyle = css(fill);
    on.fillRect(box.x, box.y, Math.max(box.width - 0.5, 0.5), box.height - 1);
    if (box.node === look.hover || box.node === look.focus) {
      on.lineWidth = box.node === look.focus ? 2 : 1;
      on.strokeStyle = css(scheme.ink);
      on.strokeRect(box.x + 1, box.y + 1, Math.max(box.width - 2.5, 0.5), box.height - 3);
    }
    if (box.width > 24 && box.title > 9) {
      on.fillStyle = inkOn(fill);
      on.fillText(fitted(on, box.node.name, box.width - 8), box.x + 4, box.y + box.title / 2);
    }
  }
}

/** Shorten a name to what fits. */
function fitted(on: CanvasRenderingContext2D, name: string, room: number): string {
  const whole = name.length * LETTER > room ? short(name.slice(0, 400)) : short(name);
  if (whole.length * LETTER * 1.3 <= room || (whole.length < 300 && on.measureText(whole).width <= room)) return whole;
  let letters = Math.floor(room / LETTER) - 1;
  while (letters > 2) {
    const text = `${whole.slice(0, letters)}…`;
    const wide = on.measureText(text).width;
    if (wide <= room) return text;
    letters = Math.min(letters - 1, Math.floor((letters * room) / wide));
  }
  return "";
}

/** Return the innermost box at a point. */
export function boxAt(boxes: readonly Rectangle[], x: number, y: number): Rectangle | null {
  return boxes.findLast((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) ?? null;
}
