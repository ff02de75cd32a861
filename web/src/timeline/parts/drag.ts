/** Drags a row's header to another place among its siblings. */
import { place } from "../input/reorder";
import type { Row } from "../layout/rows";
import { layout } from "../local";

const STILL = 5;

/** Follows the pointer from a press on a header until it is let go. */
export function dragRow(event: PointerEvent, row: Row): void {
  if (event.button !== 0 || (event.target as Element).closest("button") !== null) return;
  const tree = (event.currentTarget as HTMLElement).closest<HTMLElement>("[role=tree]");
  if (tree === null) return;
  const begun = event.clientY;
  let line: HTMLElement | null = null;
  let target: { row: Row; after: boolean } | null = null;
  const move = (now: PointerEvent): void => {
    if (line === null && Math.abs(now.clientY - begun) < STILL) return;
    const y = now.clientY - tree.getBoundingClientRect().top;
    target = targetAt(row, y);
    if (line === null) {
      line = document.createElement("div");
      line.className = "tl-drop";
      tree.append(line);
    }
    line.hidden = target === null;
    if (target !== null) line.style.top = `${edgeOf(target.row, target.after)}px`;
  };
  const up = (): void => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", up);
    window.removeEventListener("pointercancel", up);
    line?.remove();
    if (target !== null) place(row, target.row, target.after);
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", up);
  window.addEventListener("pointercancel", up);
}

function sisters(row: Row): Row[] {
  const rows = row.pinned ? layout.value.pinned.rows : layout.value.main.rows;
  return rows.filter((one) => one.parent === row.parent && one.report === row.report && one.pinned === row.pinned);
}

/** The end of a row with all that is open below it. */
function bottomOf(row: Row): number {
  const rows = row.pinned ? layout.value.pinned.rows : layout.value.main.rows;
  const at = rows.indexOf(row);
  const next = rows.slice(at + 1).find((one) => one.depth <= row.depth);
  return next?.y ?? (row.pinned ? layout.value.pinned.height : layout.value.main.height);
}

function edgeOf(row: Row, after: boolean): number {
  return after ? bottomOf(row) : row.y;
}

function targetAt(row: Row, y: number): { row: Row; after: boolean } | null {
  for (const one of sisters(row)) {
    const bottom = bottomOf(one);
    if (y < one.y || y >= bottom) continue;
    return one.key === row.key ? null : { row: one, after: y > (one.y + bottom) / 2 };
  }
  return null;
}
