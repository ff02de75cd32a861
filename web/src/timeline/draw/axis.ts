/** Paints the time axis over the rows. */
import type { Axis } from "../layout/ticks";
import { toPixel } from "../layout/scale";
import { AXIS, type Frame, font } from "./frame";
import { css } from "../../base/rgb";

export function paintAxis(frame: Frame, axis: Axis): void {
  const { context, ratio, width, scale, palette } = frame;
  const { theme } = palette;
  const height = Math.round(AXIS * ratio);
  context.fillStyle = css(theme.raised);
  context.fillRect(0, 0, width, height);
  context.fillStyle = theme.rule;
  context.fillRect(0, height - 1, width, 1);
  for (const tick of axis.ticks) {
    const long = Math.round((tick.label === "" ? 4 : 9) * ratio);
    context.fillRect(Math.round(toPixel(scale, tick.time)), height - long, 1, long);
  }
  context.font = font(ratio);
  context.textBaseline = "middle";
  context.textAlign = "left";
  let free = 0;
  if (axis.base !== "") {
    context.fillStyle = css(theme.ink);
    context.fillText(axis.base, Math.round(6 * ratio), Math.round(height * 0.4));
    free = context.measureText(axis.base).width + 14 * ratio;
  }
  context.fillStyle = theme.quiet;
  for (const tick of axis.ticks) {
    const x = Math.round(toPixel(scale, tick.time) + 4 * ratio);
    if (tick.label !== "" && x >= free) context.fillText(tick.label, x, Math.round(height * 0.4));
  }
}
