/** The flame graph as a tree of rows, opened by keys and clicks, each with its total and its own value. */
import { useId, useMemo, useRef, useState } from "preact/hooks";
import type { Flame, FlameNode } from "../../data/types";
import { Bar } from "../parts/drawing/bar";
import { useSize } from "../parts/drawing/size";
import { percent } from "../parts/table/units";
import { valued } from "./graph";
import { ordered } from "./layout";
import { Name } from "../parts/name";
import { visible } from "../../base/text";

const ROW = 20;
const BEYOND = 10;

export interface TreeRow {
  node: FlameNode;
  level: number;
  parent: number;
}

/** Return the rows that are seen: children of what is open. */
export function rowsOf(root: FlameNode, open: ReadonlySet<FlameNode>): TreeRow[] {
  const rows: TreeRow[] = [];
  const waiting: TreeRow[] = ordered(root).reverse().map((node) => ({ node, level: 1, parent: -1 }));
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    const at = rows.push(row) - 1;
    if (open.has(row.node)) for (const child of ordered(row.node).reverse()) waiting.push({ node: child, level: row.level + 1, parent: at });
  }
  return rows;
}

/** Return what is open at first: as long as one child holds nearly all, its way is. */
export function hottest(root: FlameNode): Set<FlameNode> {
  const open = new Set<FlameNode>();
  let node = ordered(root)[0];
  while (node !== undefined && node.children.length > 0) {
    open.add(node);
    const next = ordered(node)[0]!;
    if (next.value < node.value * 0.5) break;
    node = next;
  }
  return open;
}

export function CallTree({ flame, root, matches }: { flame: Flame; root: FlameNode; matches: ReadonlySet<FlameNode> | null }) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [, height] = useSize(box, [800, 400]);
  const [open, setOpen] = useState<ReadonlySet<FlameNode>>(() => hottest(root));
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  const rows = useMemo(() => rowsOf(root, open), [root, open]);
  const whole = flame.root.value || 1;
  const toggle = (node: FlameNode, to: boolean) => {
    const next = new Set(open);
    if (to) next.add(node);
    else next.delete(node);
    setOpen(next);
  };
  const move = (to: number) => {
    const next = Math.min(Math.max(to, 0), rows.length - 1);
    setActive(next);
    const node = box.current;
    if (node === null) return;
    if (next * ROW < node.scrollTop) node.scrollTop = next * ROW;
    else if ((next + 2) * ROW > node.scrollTop + node.clientHeight) node.scrollTop = (next + 2) * ROW - node.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[active];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "ArrowRight") {
      if (row.node.children.length === 0) return;
      if (open.has(row.node)) move(active + 1);
      else toggle(row.node, true);
    } else if (event.key === "ArrowLeft") {
      if (open.has(row.node)) toggle(row.node, false);
      else if (row.parent >= 0) move(row.parent);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const first = Math.max(0, Math.floor(top / ROW) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + BEYOND);
  return (
    <div class="p-calltree" ref={box} tabIndex={0} role="treegrid" aria-label="Call tree" aria-rowcount={rows.length} aria-colcount={4}
      aria-activedescendant={active >= first && active < last ? `${id}-${active}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={onKeyDown}>
      <div role="row" class="p-calltree-head">
        <span role="columnheader">Name</span>
        <span role="columnheader">Total</span>
        <span role="columnheader">Share</span>
        <span role="columnheader">Itself</span>
      </div>
      <div role="presentation" style={{ height: `${rows.length * ROW}px`, position: "relative" }}>
        {rows.slice(first, last).map((row, i) => {
          const at = first + i;
          const parent = row.node.children.length > 0;
          return (
            <div key={at} id={`${id}-${at}`} role="row" aria-level={row.level} aria-selected={at === active} aria-expanded={parent ? open.has(row.node) : undefined}
              class={`p-calltree-row ${at === active ? "p-active" : ""} ${matches !== null && !matches.has(row.node) ? "p-unlit" : ""}`} style={{ top: `${at * ROW}px` }}
              onClick={() => {
                setActive(at);
                if (parent) toggle(row.node, !open.has(row.node));
              }}>
              <span role="gridcell" style={{ paddingLeft: `${(Math.min(row.level, 60) - 1) * 12}px` }} title={visible(row.node.name)}>
                <span aria-hidden="true" class="p-twist">{parent ? (open.has(row.node) ? "▾" : "▸") : ""}</span>
                <Name text={row.node.name} most={500} />
              </span>
              <span role="gridcell">{valued(row.node.value, flame)}</span>
              <span role="gridcell" class="p-calltree-share"><Bar share={row.node.value / whole} label="Share" /> {percent(row.node.value / whole)}</span>
              <span role="gridcell">{row.node.self > 0 ? valued(row.node.self, flame) : ""}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
