/** Counters: the band from the lowest to the highest value of each pixel, and a line of the last one. */
import { size } from "../../base/format";
import { firstWhere } from "../../data/cut";
import type { Plot, Track } from "../../data/types";
import type { Scale } from "../layout/scale";
import type { Boxes } from "./pack";

/** What the bottom and the top of a counter's row stand for. */
export interface Range {
  low: number;
  high: number;
}

/** From zero where that does not flatten it, with some air above. */
export function rangeOf(track: Pick<Track, "low" | "high">): Range {
  let low = track.low ?? 0;
  let high = track.high ?? 1;
  if (low > 0 && low < high * 0.9) low = 0;
  if (!(high > low)) {
    if (low > 0) low = 0;
    else high = low + 1;
  }
  return { low, high: high + (high - low) * 0.06 };
}

export interface PlotStyle {
  y: number;
  height: number;
  range: Range;
}

/** Area up to the last value, band and line of a plot, in whole pixels. */
export function packPlot(area: Boxes, band: Boxes, line: Boxes, plot: Plot, scale: Scale, offset: number, from: number, to: number, style: PlotStyle): void {
  const { time, low, high, last } = plot;
  const begin = scale.begin - offset;
  const count = time.length;
  const bottom = style.y + style.height;
  const perValue = style.height / (style.range.high - style.range.low);
  const level = (value: number): number => {
    const y = Math.round(bottom - (value - style.range.low) * perValue);
    return y < style.y ? style.y : y > bottom ? bottom : y;
  };
  const first = Math.max(firstWhere(0, count, (at) => time[at]! > begin + from * scale.grain) - 1, 0);
  let before = Number.NaN;
  let filled = from;
  for (let at = first; at < count; at += 1) {
    const exact = (time[at]! - begin) / scale.grain;
    if (exact >= to) break;
    // A value holds until the next one; the last of an answer up to the end of what was asked.
    const until = at + 1 < count ? time[at + 1]! : plot.end;
    const left = Math.max(Math.round(exact), filled);
    const right = Math.min(Math.max(Math.round((until - begin) / scale.grain), left), to);
    const y = level(last[at]!);
    const top = level(high[at]!);
    const deep = level(low[at]!);
    if (deep - top > 1) band.push(Math.max(Math.min(left, to - 1), from), top, Math.max(right - left, 1), deep - top);
    if (right > left) {
      if (bottom > y) area.push(left, y, right - left, bottom - y);
      line.push(left, y, right - left, 1);
      filled = right;
    }
    if (!Number.isNaN(before) && Math.abs(before - y) > 1) line.push(left, Math.min(before, y), 1, Math.abs(before - y) + 1);
    before = y;
  }
}

/** The last value at or before a time; null where the plot says nothing of it. */
export function valueAt(plot: Plot, time: number): { low: number; high: number; last: number; time: number } | null {
  if (time < plot.begin || time > plot.end) return null;
  const at = firstWhere(0, plot.time.length, (index) => plot.time[index]! > time) - 1;
  return at < 0 ? null : { low: plot.low[at]!, high: plot.high[at]!, last: plot.last[at]!, time: plot.time[at]! };
}

const DECIMAL = ["", "k", "M", "G", "T"];

/** A value with its unit: 1.5 GiB, 73 %, 1.2 M. */
export function valueLabel(value: number, unit = ""): string {
  if (/^(bytes?|B)$/i.test(unit)) return size(value);
  const steps = unit === "%" || value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)) / 3);
  const power = Math.min(Math.max(steps, 0), DECIMAL.length - 1);
  const scaled = value / 1000 ** power;
  const digits = Math.abs(scaled) >= 100 || Number.isInteger(scaled) ? 0 : Math.abs(scaled) >= 10 ? 1 : 2;
  return `${scaled.toFixed(digits)} ${DECIMAL[power]}${unit}`.trimEnd();
}
