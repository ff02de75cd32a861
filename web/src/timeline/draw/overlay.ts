/** Paints what changes with each move of the pointer, on a separate canvas: ranges, marks, outlines, arrows, cursor. */
import type { Span } from "../../data/source";
import type { Located } from "../../data/types";
import type { Mark } from "../../app/state";
import { toPixel, toTime } from "../layout/scale";
import { time as durationLabel } from "../../base/format";
import { timeLabel } from "../layout/ticks";
import { AXIS, type Frame } from "./frame";
import { type Linked, type Target, paintArrows } from "./links";
import { rectangleOf } from "./rectangle";
import { css } from "../../base/rgb";
import { paintTag } from "./tag";

export interface Overlay extends Linked {
  hovered: Located | null;
  focused: Located | null;
  /** Same launch as the selected event. */
  correlated: readonly Located[];
  ranges: readonly Span[];
  marks: readonly Mark[];
  /** CSS pixels. */
  pointer: { x: number; y: number } | null;
}

/** Returns the words that can be clicked. */
export function paintOverlay(overlay: Overlay): Target[] {
  const { frame } = overlay;
  const { context, width, height, palette, ratio } = frame;
  const { theme } = palette;
  context.clearRect(0, 0, width, height);
  overlay.ranges.forEach((range, index) => paintRange(frame, range, index === 0 ? theme.accent : theme.second, overlay.ranges.length > 1 ? "AB"[index]! : ""));
  for (const event of overlay.correlated) outline(overlay, event, theme.second, 2);
  if (overlay.hovered !== null) outline(overlay, overlay.hovered, css(theme.ink), 1);
  if (overlay.selected !== null) outline(overlay, overlay.selected, theme.accent, 2);
  if (overlay.focused !== null) outline(overlay, overlay.focused, theme.accent, 2, true);
  const targets = paintArrows(overlay);
  for (const mark of overlay.marks) paintMark(frame, mark);
  if (overlay.pointer !== null) {
    const x = Math.round(overlay.pointer.x * ratio);
    context.fillStyle = theme.cursor;
    context.globalAlpha = 0.55;
    context.fillRect(x, Math.round(AXIS * ratio) - 4, 1, height);
    context.globalAlpha = 1;
    const words = timeLabel(toTime(frame.scale, x), Math.max(frame.scale.grain, 1));
    paintTag(frame, words, x, 1, { align: "middle", ground: css(theme.ink), ink: css(theme.ground) });
  }
  return targets;
}

function outline(overlay: Overlay, event: Located, color: string, thick: number, dashed = false): void {
  const { frame } = overlay;
  const { context, ratio } = frame;
  const box = rectangleOf(frame, overlay.places, event);
  if (box === null || box.right < 0 || box.left > frame.width) return;
  const top = Math.round(box.window.top * ratio);
  const bottom = Math.round(box.window.bottom * ratio);
  if (box.bottom < top || box.top > bottom) return;
  context.save();
  context.beginPath();
  context.rect(0, top, frame.width, bottom - top);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = Math.max(Math.round(thick * ratio), 1);
  context.setLineDash(dashed ? [4 * ratio, 3 * ratio] : []);
  const left = Math.max(box.left, -10);
  const right = Math.min(box.right, frame.width + 10);
  context.strokeRect(left - 0.5, box.top - 0.5, right - left + 1, box.bottom - box.top + 1);
  context.restore();
}

function paintRange(frame: Frame, range: Span, color: string, letter: string): void {
  const { context, width, height, ratio, scale } = frame;
  const left = Math.round(toPixel(scale, range.begin));
  const right = Math.round(toPixel(scale, range.end));
  if (right < 0 || left > width) return;
  const top = Math.round(AXIS * ratio);
  context.fillStyle = color;
  context.globalAlpha = 0.13;
  context.fillRect(left, top, Math.max(right - left, 1), height - top);
  context.globalAlpha = 0.9;
  context.fillRect(left, 0, 1, height);
  context.fillRect(right, 0, 1, height);
  context.fillRect(left, top - Math.round(3 * ratio), Math.max(right - left, 1), Math.round(3 * ratio));
  context.globalAlpha = 1;
  const middle = (Math.max(left, 0) + Math.min(right, width)) / 2;
  paintTag(frame, `${letter} ${durationLabel(range.end - range.begin)}`.trim(), middle, top + Math.round(3 * ratio), {
    align: "middle", ground: color, ink: css(frame.palette.theme.ground),
  });
}

function paintMark(frame: Frame, mark: Mark): void {
  const { context, height, ratio, scale, width, palette } = frame;
  const x = Math.round(toPixel(scale, mark.time));
  if (x < 0 || x > width) return;
  context.fillStyle = palette.theme.second;
  for (let y = Math.round(AXIS * ratio); y < height; y += Math.round(6 * ratio)) context.fillRect(x, y, 1, Math.round(3 * ratio));
  paintTag(frame, `⚑ ${mark.label}`, x, Math.round((AXIS - 15) * ratio), { align: "start", ground: palette.theme.second, ink: css(palette.theme.ground) });
}
