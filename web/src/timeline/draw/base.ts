/** Paints rows: grounds, grid, rectangles and counters as pixels, then text. */
import { ticksOf } from "../layout/ticks";
import { type Row, laneTop, rowsBetween } from "../layout/rows";
import { toPixel } from "../layout/scale";
import { paintAxis } from "./axis";
import { AXIS, type Frame, type Window, font } from "./frame";
import { type DrawList, addBusy, levelOf, packRun } from "./pack";
import { INKS, LEVELS } from "./palette";
import { packMarks } from "./points";
import { paintPlot, paintTop } from "./counters";
import { trackPieces } from "./piece";
import { css, rgb } from "../../base/rgb";

/** Labels of a frame at most: writing is what costs most on machines without a GPU. */
const MOST_LABELS = 900;

export function paintBase(frame: Frame): void {
  const axis = ticksOf(frame.view, frame.width / frame.ratio);
  const grid = axis.ticks.filter((tick) => tick.label !== "").map((tick) => Math.round(toPixel(frame.scale, tick.time)));
  for (const window of frame.windows) paintWindow(frame, window, grid);
  paintAxis(frame, axis);
}

function paintWindow(frame: Frame, window: Window, grid: readonly number[]): void {
  const { context, ratio, width, height, list, palette, pixels } = frame;
  const top = Math.round(window.top * ratio);
  const bottom = Math.round(window.bottom * ratio);
  const rows = rowsBetween(window.rows, window.top - window.shift, window.bottom - window.shift);
  pixels.within(width, height, top, bottom);
  paintGrounds(frame, window, rows, grid);
  list.clear();
  for (const row of rows) packRow(frame, window, row);
  pixels.paint(list, palette);
  const counters = rows.filter((row) => row.style === "counter");
  for (const row of counters) paintPlot(frame, window, row);
  pixels.show(context);
  context.save();
  context.beginPath();
  context.rect(0, top, width, bottom - top);
  context.clip();
  paintLabels(frame, list);
  for (const row of counters) paintTop(frame, window, row);
  context.restore();
  if (window.top > AXIS || frame.windows.length === 1) return;
  // The pinned rows end with a line that is seen over what scrolls below it.
  context.fillStyle = palette.theme.rule;
  context.fillRect(0, bottom - Math.round(2 * ratio), width, Math.round(2 * ratio));
}

function paintGrounds(frame: Frame, window: Window, rows: readonly Row[], grid: readonly number[]): void {
  const { ratio, width, pixels, palette } = frame;
  const { theme } = palette;
  const top = Math.round(window.top * ratio);
  const bottom = Math.round(window.bottom * ratio);
  const faint = rgb(theme.faintRule);
  pixels.fill(theme.ground, 0, top, width, bottom - top);
  for (const row of rows) if (row.style === "group") pixels.fill(theme.raised, 0, Math.round((row.y + window.shift) * ratio), width, Math.round(row.height * ratio));
  for (const x of grid) pixels.fill(faint, x, top, 1, bottom - top);
  for (const row of rows) pixels.fill(faint, 0, Math.round((row.y + row.height + window.shift) * ratio) - 1, width, 1);
  paintOutside(frame, top, bottom, rows, window);
}

/** Before and after the recording there is nothing to be seen, which is not the same as nothing having run. */
function paintOutside(frame: Frame, top: number, bottom: number, rows: readonly Row[], window: Window): void {
  const { ratio, width, palette, pixels } = frame;
  const hatch = rgb(palette.theme.hatch);
  const reports = frame.meta?.reports ?? [];
  for (const report of reports) {
    const own = reports.length === 1 ? null : rows.filter((row) => row.report === report.report);
    if (own !== null && own.length === 0) continue;
    const from = own === null ? top : Math.max(Math.round((own[0]!.y + window.shift) * ratio), top);
    const to = own === null ? bottom : Math.min(Math.round((own.at(-1)!.y + own.at(-1)!.height + window.shift) * ratio), bottom);
    const offset = frame.offsets[report.report] ?? 0;
    pixels.fill(hatch, 0, from, Math.round(toPixel(frame.scale, report.begin + offset)), to - from);
    const end = Math.max(Math.round(toPixel(frame.scale, report.end + offset)), 0);
    pixels.fill(hatch, end, from, width - end, to - from);
  }
}

function packRow(frame: Frame, window: Window, row: Row): void {
  if (row.style === "counter" || row.tracks.length === 0) return;
  if (row.node.track === undefined) return packSummary(frame, window, row);
  const { ratio, lights, list, scale } = frame;
  const track = row.node.track;
  const offset = frame.offsets[row.report] ?? 0;
  const top = row.y + window.shift;
  const height = Math.max(Math.round((row.style === "slices" ? row.laneHeight - 1 : row.laneHeight) * ratio), 1);
  const parts = trackPieces(frame, row.report, track);
  if (parts.length === 0) paintWaiting(frame, Math.round((top + laneTop(row, 0)) * ratio), Math.round((row.lanes * row.laneHeight - 1) * ratio));
  for (const piece of parts) {
    for (let lane = 0; lane < row.lanes; lane += 1) {
      const run = piece.tile.lanes[lane];
      if (run === undefined) continue;
      const y = Math.round((top + laneTop(row, lane)) * ratio);
      const style = {
        y, height, colors: lights.colors(run.rects, track.layer), byLink: lights.byLink, lit: lights.lit(run.rects),
        point: row.style === "marks" ? Math.round(2 * ratio) : row.style === "samples" ? 1 : 0,
        labels: row.style === "slices" || row.style === "samples" ? Math.round(26 * ratio) : 0,
      };
      if (row.style === "marks") packMarks(list, run, scale, offset, piece.from, piece.to, style);
      else packRun(list, run, scale, offset, piece.from, piece.to, style);
    }
  }
}

/** Nothing is known yet, which must not look like nothing having run. */
function paintWaiting(frame: Frame, y: number, height: number): void {
  const { ratio, width, palette, pixels } = frame;
  const hatch = rgb(palette.theme.hatch);
  const step = Math.round(12 * ratio);
  for (let x = 0; x < width; x += step) pixels.fill(hatch, x, y, step >> 1, height);
}

/** A closed group: how busy what is below it was, column by column. */
function packSummary(frame: Frame, window: Window, row: Row): void {
  const { ratio, scale, width, list, palette } = frame;
  const columns = new Float32Array(width);
  for (const track of row.tracks) {
    for (const piece of trackPieces(frame, row.report, track)) {
      const run = piece.tile.lanes[0];
      if (run === undefined) continue;
      const part = columns.subarray(piece.from, Math.max(piece.to, piece.from));
      addBusy(part, run, { ...scale, begin: scale.begin + piece.from * scale.grain }, frame.offsets[row.report] ?? 0);
    }
  }
  const isGpu = row.tracks.some((one) => one.layer === "kernels" || one.layer === "memcpys");
  const color = palette.number(palette.theme.kinds[isGpu ? "compute" : "range"]!);
  const y = Math.round((row.y + window.shift + laneTop(row, 0)) * ratio);
  const height = Math.round(row.laneHeight * ratio);
  let from = 0;
  const levelAt = (column: number): number => (columns[column]! < 0.004 ? -1 : levelOf(columns[column]!));
  let level = levelAt(0);
  for (let column = 1; column <= width; column += 1) {
    const next = column === width ? -2 : levelAt(column);
    if (next === level) continue;
    if (level >= 0) list.add(color * LEVELS + level, from, y, column - from, height);
    from = column;
    level = next;
  }
}

function paintLabels(frame: Frame, list: DrawList): void {
  const { context, ratio, fit, palette } = frame;
  const { labels } = list;
  // Where there are too many the wide ones are written.
  if (labels.length > MOST_LABELS) labels.sort((a, b) => b.width - a.width).length = MOST_LABELS;
  context.font = font(ratio);
  context.textBaseline = "middle";
  context.textAlign = "left";
  const pad = Math.round(3 * ratio);
  for (const ink of [0, 1, 2] as const) {
    context.fillStyle = ink === 2 ? css(palette.theme.ink) : INKS[ink];
    for (const label of labels) {
      if ((label.shade < 0 ? 2 : palette.ink(label.shade)) !== ink) continue;
      const text = fit.fit(label.text, label.width - 2 * pad);
      if (text !== "") context.fillText(text, label.x + pad, label.y + label.height / 2 + 0.5);
    }
  }
}
