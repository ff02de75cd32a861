/** A few words on a coloured ground, kept on the canvas. */
import { type Frame, font } from "./frame";

export interface TagStyle {
  align: "start" | "middle" | "end";
  ground: string;
  ink: string;
}

/** Draws it with its top at `y`; returns its width. Device pixels. */
export function paintTag(frame: Frame, text: string, x: number, y: number, style: TagStyle): number {
  const { context, ratio, width } = frame;
  context.font = font(ratio, 10.5);
  context.textBaseline = "middle";
  context.textAlign = "left";
  const pad = Math.round(4 * ratio);
  const height = Math.round(14 * ratio);
  const wide = Math.ceil(context.measureText(text).width) + 2 * pad;
  const wanted = style.align === "start" ? x : style.align === "end" ? x - wide : x - wide / 2;
  const left = Math.round(Math.min(Math.max(wanted, 0), Math.max(width - wide, 0)));
  context.fillStyle = style.ground;
  context.fillRect(left, Math.round(y), wide, height);
  context.fillStyle = style.ink;
  context.fillText(text, left + pad, Math.round(y) + height / 2 + 0.5);
  return wide;
}
