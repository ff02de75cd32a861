/** Marks: ticks, with their names beside them where the next one is far enough. */
import type { Scale } from "../layout/scale";
import { type DrawList, type LaneStyle, type Run, firstAfter, packRun } from "./pack";

/** Least and greatest width of a name beside a mark, in widths of its tick. */
const LEAST = 20;
const MOST = 110;

export function packMarks(list: DrawList, run: Run, scale: Scale, offset: number, from: number, to: number, style: LaneStyle): void {
  packRun(list, run, scale, offset, from, to, style);
  const { start, slices, name, names } = run.rects;
  const begin = scale.begin - offset;
  const last = run.first + run.count;
  for (let at = firstAfter(run, begin + from * scale.grain); at < last; at += 1) {
    const left = Math.round((start[at]! - begin) / scale.grain);
    if (left >= to) break;
    const next = at + 1 < last ? (start[at + 1]! - begin) / scale.grain : to;
    const width = Math.min(Math.floor(next) - left - style.point, style.point * MOST);
    if (slices[at] !== 1 || width < style.point * LEAST || left < from) continue;
    if (style.lit !== null && style.lit[name[at]!] === 0) continue;
    list.labels.push({ text: names[name[at]!]!.text, x: left + style.point, y: style.y, width, height: style.height, shade: -1 });
  }
}
