/** Paints the arrows from the selected event to related events; arrows that leave the screen end on its edge with a name. */
import type { EventDetails, Located } from "../../data/types";
import { type Arrow, arrowBetween, bend, type Box, type Point, sideOf } from "../layout/arrows";
import { time as durationLabel } from "../../base/format";
import { short } from "../../base/names";
import { type Rectangle, rectangleOf } from "./rectangle";
import type { Places } from "../layout/places";
import { AXIS, type Frame } from "./frame";
import { css } from "../../base/rgb";
import { paintTag } from "./tag";

/** More arrows than this are a tangle. */
const MOST = 24;

/** Words that stand for an event beyond the screen: a click on them goes there. */
export interface Target extends Box {
  event: Located;
}

/** The selected event, its links, and where events are drawn. */
export interface Linked {
  frame: Frame;
  places: Places;
  selected: Located | null;
  details: EventDetails | null;
}

export function paintArrows(overlay: Linked): Target[] {
  const { selected, details, frame, places } = overlay;
  const targets: Target[] = [];
  if (selected === null || details === null || !isSame(details.event, selected)) return targets;
  const own = rectangleOf(frame, places, selected);
  if (own === null) return targets;
  for (const link of details.links.slice(0, MOST)) {
    const other = rectangleOf(frame, places, link);
    if (other !== null) paintLink(overlay, selected, own, link, other, targets);
  }
  return targets;
}

export function isSame(a: Located, b: Located): boolean {
  return a.report === b.report && a.table === b.table && a.process === b.process && a.row === b.row;
}

/** Of an event that reaches into the screen from beside it an arrow takes what is seen. */
function within(x: number, event: Rectangle, box: Box): number {
  if (event.right < box.left || event.left > box.right) return x;
  return Math.min(Math.max(x, box.left), box.right);
}

function boxOf(frame: Frame): Box {
  const margin = 4 * frame.ratio;
  return { left: margin, top: AXIS * frame.ratio + margin, right: frame.width - margin, bottom: frame.height - margin };
}

function paintLink(
  overlay: Linked, selected: Located, own: Rectangle, link: Located & { relation: string }, other: Rectangle, targets: Target[],
): void {
  const { frame } = overlay;
  const forward = selected.start < link.start || (selected.start === link.start && !CAUSES.has(link.relation));
  const [early, late] = forward ? [own, other] : [other, own];
  // From the end of what came first where the other began after that, else from its begin.
  const box = boxOf(frame);
  const from: Point = { x: within(early.right <= late.left ? early.right : early.left, early, box), y: (early.top + early.bottom) / 2 };
  const to: Point = { x: within(late.left, late, box), y: (late.top + late.bottom) / 2 };
  const arrow = arrowBetween(from, to, box);
  if (arrow === null) return;
  const { context, ratio, palette } = frame;
  context.save();
  context.strokeStyle = palette.theme.second;
  context.fillStyle = palette.theme.second;
  context.lineWidth = Math.max(1.5 * ratio, 1);
  context.setLineDash(early.folded || late.folded ? [5 * ratio, 3 * ratio] : []);
  curve(frame, arrow);
  context.setLineDash([]);
  head(frame, arrow);
  context.restore();
  label(overlay, link, forward ? arrow.to : arrow.from, forward ? to : from, box, selected, targets);
}

function curve(frame: Frame, arrow: Arrow): void {
  const { context } = frame;
  const [first, second] = bend(arrow);
  context.beginPath();
  context.moveTo(arrow.from.x, arrow.from.y);
  context.bezierCurveTo(first.x, first.y, second.x, second.y, arrow.to.x, arrow.to.y);
  context.stroke();
}

/** Directions of heads: to the right, which is how a line reaches an event, unless it leaves the screen elsewhere. */
const TURNS = { right: 0, down: Math.PI / 2, left: Math.PI, up: -Math.PI / 2 } as const;

function head(frame: Frame, arrow: Arrow): void {
  const { context, ratio } = frame;
  const size = 7 * ratio;
  context.save();
  context.translate(arrow.to.x, arrow.to.y);
  context.rotate(TURNS[arrow.beyond ?? "right"]);
  context.beginPath();
  context.moveTo(0, 0);
  context.lineTo(-size, -size * 0.5);
  context.lineTo(-size, size * 0.5);
  context.closePath();
  context.fill();
  context.restore();
}

/** What comes first where both begin at once. */
const CAUSES = new Set(["launch", "api", "nvtx"]);
const SIGNS = { right: "▶", down: "▼", left: "◀", up: "▲" } as const;

/** Names the other end where it is not on the screen, and how far it is. */
function label(overlay: Linked, link: Located & { relation: string }, shown: Point, real: Point, box: Box, selected: Located, targets: Target[]): void {
  if (shown.x === real.x && shown.y === real.y) return;
  const { frame } = overlay;
  const { theme } = frame.palette;
  const after = link.start + (frame.offsets[link.report] ?? 0) - selected.start - (frame.offsets[selected.report] ?? 0);
  const name = short(link.name).slice(0, 40);
  const side = sideOf(real, box);
  const words = `${side === null ? "" : `${SIGNS[side]} `}${link.relation}: ${name} ${after < 0 ? "−" : "+"}${durationLabel(Math.abs(after))}`;
  const atRight = shown.x > (box.left + box.right) / 2;
  const style = { align: atRight ? "end" : "start", ground: theme.second, ink: css(theme.ground) } as const;
  const place = paintTag(frame, words, shown.x + (atRight ? -10 : 10) * frame.ratio, shown.y - 7 * frame.ratio, style, targets);
  targets.push({ ...place, event: link });
}
