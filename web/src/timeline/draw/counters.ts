/** Paints a counter's row: area, band, line, and the value of its top. */
import type { Row } from "../layout/rows";
import { type Frame, type Window, font } from "./frame";
import { hash } from "../../base/names";
import { Boxes } from "./pack";
import { packPlot, rangeOf, valueLabel } from "./plots";
import { trackPieces } from "./piece";
import { css, mix } from "../../base/rgb";

const area = new Boxes();
const band = new Boxes();
const line = new Boxes();

export function paintPlot(frame: Frame, window: Window, row: Row): void {
  const track = row.node.track;
  if (track === undefined) return;
  const { pixels, palette } = frame;
  const { theme } = palette;
  const place = { ...placeOf(frame, window, row), range: rangeOf(track) };
  for (const boxes of [area, band, line]) boxes.length = 0;
  for (const piece of trackPieces(frame, row.report, track)) {
    if (piece.tile.plot === null) continue;
    packPlot(area, band, line, piece.tile.plot, frame.scale, frame.offsets[row.report] ?? 0, piece.from, piece.to, place);
  }
  const color = theme.fills[hash(row.node.name) % theme.fills.length]!;
  for (const [boxes, share] of [[area, 0.22], [band, 0.5], [line, theme.dark ? 1 : 0.85]] as const) {
    pixels.fillAll(mix(share > 0.8 && !theme.dark ? mix(color, theme.ink, 0.7) : color, theme.ground, share), boxes);
  }
}

/** What the top of a counter's row stands for, over what is painted there. */
export function paintTop(frame: Frame, window: Window, row: Row): void {
  const track = row.node.track;
  if (track === undefined) return;
  const { context, ratio, palette } = frame;
  const { theme } = palette;
  const { y } = placeOf(frame, window, row);
  context.font = font(ratio, 10);
  context.textBaseline = "top";
  context.textAlign = "right";
  const words = valueLabel(track.high ?? 0, track.unit);
  const wide = context.measureText(words).width + 6 * ratio;
  context.fillStyle = css(theme.ground);
  context.globalAlpha = 0.7;
  context.fillRect(frame.width - wide, y, wide, Math.round(13 * ratio));
  context.globalAlpha = 1;
  context.fillStyle = theme.quiet;
  context.fillText(words, frame.width - Math.round(3 * ratio), y + Math.round(ratio));
}

/** Pixels of the canvas. */
function placeOf({ ratio }: Frame, window: Window, row: Row): { y: number; height: number } {
  return { y: Math.round((row.y + window.shift + 3) * ratio), height: Math.round((row.height - 6) * ratio) };
}
