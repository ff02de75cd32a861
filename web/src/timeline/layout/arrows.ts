/** Computes the ends of arrows between events, and where they leave the screen. */

export interface Point {
  x: number;
  y: number;
}

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Arrow {
  from: Point;
  to: Point;
  /** The end that is on the edge of the screen, because the event is beyond it; null: all of it is seen. */
  beyond: "left" | "right" | "up" | "down" | null;
}

/** The point of the box nearest to one outside. */
export function clampTo(point: Point, box: Box): Point {
  return { x: Math.min(Math.max(point.x, box.left), box.right), y: Math.min(Math.max(point.y, box.top), box.bottom) };
}

/** The side of a box on which a point lies beyond it: sideways counts more than up and down, for time runs sideways. */
export function sideOf(point: Point, box: Box): Arrow["beyond"] {
  if (point.x < box.left) return "left";
  if (point.x > box.right) return "right";
  if (point.y < box.top) return "up";
  return point.y > box.bottom ? "down" : null;
}

/** An arrow between two points of which the box shows a part; null where both are beyond the same side. */
export function arrowBetween(from: Point, to: Point, box: Box): Arrow | null {
  const away = sideOf(from, box);
  const beyond = sideOf(to, box);
  if (away !== null && away === beyond) return null;
  return { from: clampTo(from, box), to: clampTo(to, box), beyond: beyond ?? null };
}

/** The two points that bend the line: it leaves to the right and comes from the left, as time goes. */
export function bend(arrow: Arrow): [Point, Point] {
  const { from, to } = arrow;
  const reach = Math.min(Math.max(Math.abs(to.x - from.x) / 2, 14), 90);
  return [
    { x: from.x + reach, y: from.y },
    { x: to.x - reach, y: to.y },
  ];
}
