/** A table of any length: only the rows in sight are in the page; sorted by its heads, walked by keys, rows with a place open it. */
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { Column, Table } from "../../../data/types";
import { letter } from "./letter";
import { useSize } from "../drawing/size";
import type { Order } from "./sorting";
import { turned } from "./sorting";
import { shown } from "./units";
import { widths } from "./widths";
import { Name } from "../name";

export const ROW = 22;
const BEYOND = 8;
/** What tells files apart is at their end: where there is too little room, the beginning gives way. */
const PATH = /^(\/|[A-Za-z]:\\)[^\s/\\]+[/\\]/;
const UNSEEN = 24; // rows drawn where the height is not known yet

export interface GridProps {
  label: string;
  columns: readonly Column[];
  rows: Table["rows"];
  /** Which rows, in which order. */
  order: readonly number[];
  sorted: Order | null;
  onSort?: (order: Order | null) => void;
  /** Opens row i (index into `rows`); `opens` says which rows can be. */
  onOpen?: (row: number) => void;
  opens?: (row: number) => boolean;
  openTitle?: string;
}

/** Draw it; a real `<table>` with the roles and counts of a grid. */
export function Grid({ label, columns, rows, order, sorted, onSort, onOpen, opens, openTitle }: GridProps) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [width, height] = useSize(box, [0, 0]);
  const [active, setActive] = useState(-1);
  const room = width > 0 ? Math.floor(width / letter()) : 140;
  const wide = useMemo(() => widths(columns, rows, room), [columns, rows, room]);
  const most = useMemo(() => columns.map((column, i) => barred(column, rows, i)), [columns, rows]);
  const total = wide.reduce((sum, one) => sum + one, 0);

  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
    setTop(0);
    setActive(-1);
  }, [columns.map((column) => column.name).join("\n"), sorted]);

  const first = Math.min(Math.max(0, Math.floor(top / ROW) - BEYOND), Math.max(order.length - 1, 0));
  const seen = height > 0 ? Math.ceil(height / ROW) : UNSEEN;
  const last = Math.min(order.length, Math.floor(top / ROW) + seen + BEYOND);
  const canOpen = (row: number) => onOpen !== undefined && (opens === undefined || opens(row));

  const move = (to: number) => {
    const next = Math.min(Math.max(to, 0), order.length - 1);
    setActive(next);
    const node = box.current;
    if (node === null) return;
    const page = Math.max(node.clientHeight - ROW, ROW); // the head covers one row
    if (next * ROW < node.scrollTop) node.scrollTop = next * ROW;
    else if ((next + 1) * ROW > node.scrollTop + page) node.scrollTop = (next + 1) * ROW - page;
    setTop(node.scrollTop);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, seen - 2);
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: order.length - 1 }[event.key];
    if (to !== undefined) move(to);
    else if ((event.key === "Enter" || event.key === " ") && active >= 0 && canOpen(order[active]!)) onOpen!(order[active]!);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div class="p-grid" ref={box} tabIndex={0} role="grid" aria-label={label} aria-rowcount={order.length + 1} aria-colcount={columns.length}
      aria-activedescendant={active >= first && active < last ? `${id}-${active}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={onKeyDown}>
      <table role="presentation" style={{ minWidth: `${total}ch`, ...(columns.some((column) => column.kind === "text") ? {} : { width: `${total}ch` }) }}>
        <colgroup>{wide.map((one, i) => <col key={i} style={{ width: `${(one / total) * 100}%` }} />)}</colgroup>
        <thead role="rowgroup">
          <tr role="row" aria-rowindex={1}>
            {columns.map((column, i) => (
              <Head key={i} column={column} at={i} sorted={sorted} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {first > 0 && <tr role="presentation" style={{ height: `${first * ROW}px` }} />}
          {order.slice(first, last).map((row, i) => {
            const at = first + i;
            const open = canOpen(row);
            return (
              <tr key={row} id={`${id}-${at}`} role="row" aria-rowindex={at + 2} aria-selected={at === active} title={open ? openTitle : undefined}
                class={`${open ? "p-opens" : ""} ${at === active ? "p-active" : ""}`}
                onClick={() => {
                  setActive(at);
                  if (open && !hasSelection()) onOpen!(row);
                }}>
                {columns.map((column, j) => <Cell key={j} column={column} value={rows[row]![j] ?? null} most={most[j] ?? null} />)}
              </tr>
            );
          })}
          {last < order.length && <tr role="presentation" style={{ height: `${(order.length - last) * ROW}px` }} />}
        </tbody>
      </table>
    </div>
  );
}

function Head({ column, at, sorted, onSort }: { column: Column; at: number; sorted: Order | null; onSort?: ((order: Order | null) => void) | undefined }) {
  const direction = sorted?.column === at ? (sorted.down ? "descending" : "ascending") : "none";
  const numeric = column.kind !== "text";
  const name = column.unit && column.name.endsWith(` (${column.unit})`) ? column.name.slice(0, -column.unit.length - 3) : column.name;
  return (
    <th role="columnheader" scope="col" aria-sort={direction} class={numeric ? "p-number" : ""}>
      {onSort === undefined ? name : (
        <button type="button" title={`Sort by ${name}`} onClick={() => onSort(turned(sorted, at, numeric))}>
          {name}
          <span class="p-sorted" aria-hidden="true">{direction === "none" ? "" : direction === "descending" ? " ▾" : " ▴"}</span>
        </button>
      )}
    </th>
  );
}

/** What a full bar is in a column of shares: 100 %, or the greatest where they add up to more; null where bars would say nothing, as of changes. */
function barred(column: Column, rows: Table["rows"], at: number): number | null {
  if (column.unit !== "%" || /change|delta/i.test(column.name)) return null;
  let most = 100;
  for (const row of rows) {
    const value = row[at];
    if (typeof value !== "number") continue;
    if (value < 0) return null;
    most = Math.max(most, value);
  }
  return most;
}

function Cell({ column, value, most }: { column: Column; value: string | number | boolean | null; most: number | null }) {
  const text = shown(value, column);
  if (column.kind === "text") {
    return <td role="gridcell" class={PATH.test(text) ? "p-path" : ""} title={text.length > 20 ? text : undefined}><Name text={text} most={500} /></td>;
  }
  const share = most !== null && typeof value === "number" ? (value / most) * 100 : null;
  const exact = typeof value === "number" && text !== String(value) ? `${value}${column.unit ? ` ${column.unit}` : ""}` : undefined;
  return (
    <td role="gridcell" class="p-number" title={exact}>
      {share !== null && <span class="p-cellbar" aria-hidden="true" style={{ width: `${share}%` }} />}
      <span class="p-celltext">{text}</span>
    </td>
  );
}

/** A click that selects text for copying must not navigate. */
function hasSelection(): boolean {
  return (globalThis.getSelection?.()?.toString() ?? "") !== "";
}
