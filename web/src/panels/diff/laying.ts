/** Aligns two reports: offsets at which a step or range of both begins at the same place of the axis. */
import type { Difference } from "../../data/types";

export type Anchor = Difference["anchors"][number];

/** Return what is added to times of reports 0 and 1 so that both times of the anchor coincide; without one, so that both begin together. */
export function laid(anchor: Anchor | null, begins: readonly number[] = [0, 0]): number[] {
  return anchor === null ? [0, (begins[0] ?? 0) - (begins[1] ?? 0)] : [0, anchor.a - anchor.b];
}

/** Return the anchor that the offsets come from; -1 where none fits: they begin together, or were moved otherwise. */
export function current(anchors: readonly Anchor[], offsets: readonly number[]): number {
  const by = (offsets[1] ?? 0) - (offsets[0] ?? 0);
  return anchors.findIndex((one) => one.a - one.b === by);
}
