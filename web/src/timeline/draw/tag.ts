/** A few words on a coloured ground, kept on the canvas. */
import type { Box } from "../layout/arrows";
import { type Frame, font } from "./frame";

export interface TagStyle {
  align: "start" | "middle" | "end";
  ground: string;
  ink: string;
}

/** Draws it with its top at `y`, moved to where none of `others` is; returns where it is. Device pixels. */
export function paintTag(frame: Frame, text: string, x: number, y: number, style: TagStyle, others: readonly Box[] = []): Box {
  const { context, ratio } = frame;
  context.font = font(ratio, 10.5);
  context.textBaseline = "middle";
  context.textAlign = "left";
  const pad = Math.round(4 * ratio);
  const height = Math.round(14 * ratio);
  const wide = Math.ceil(context.measureText(text).width) + 2 * pad;
  const wanted = style.align === "start" ? x : style.align === "end" ? x - wide : x - wide / 2;
  const box = freeBox({ x: wanted, y, width: wide, height }, frame, others);
  context.fillStyle = style.ground;
  context.fillRect(box.left, box.top, wide, height);
  context.fillStyle = style.ink;
  context.fillText(text, box.left + pad, box.top + height / 2 + 0.5);
  return box;
}

/** The place nearest to the wanted one that is on the canvas and free: above the others where it is low, else below them. */
export function freeBox(
  wanted: { x: number; y: number; width: number; height: number }, canvas: { width: number; height: number }, others: readonly Box[],
): Box {
  const left = Math.round(Math.min(Math.max(wanted.x, 0), Math.max(canvas.width - wanted.width, 0)));
  let top = Math.round(Math.min(Math.max(wanted.y, 0), Math.max(canvas.height - wanted.height, 0)));
  const way = top > canvas.height / 2 ? -1 : 1;
  const at = (y: number): Box => ({ left, top: y, right: left + wanted.width, bottom: y + wanted.height });
  for (let tries = 0; tries < others.length; tries += 1) {
    const hit = others.find((one) => one.left < left + wanted.width && one.right > left && one.top < top + wanted.height && one.bottom > top);
    if (hit === undefined) break;
    top = way > 0 ? hit.bottom + 1 : hit.top - wanted.height - 1;
  }
  return at(top);
}
