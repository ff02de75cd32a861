/** The names of the rows: a tree for screen readers and keys, with buttons to open, pin and hide. */
import { visible } from "../../base/text";
import { count, percent } from "../../base/format";
import { useEffect, useRef } from "preact/hooks";
import { bringRow } from "../input/follow";
import { hide, nudge, toggleLanes, toggleOpen, togglePin } from "../input/reorder";
import { FEW_LANES, type Row } from "../layout/rows";
import { valueLabel } from "../draw/plots";
import { focusedRow, headerWidth, layout, rested } from "../local";
import { dragRow } from "./drag";

/** With more rows than this, and at first, the page has only those near the screen. */
export const ALL_IN_PAGE = 400;

/** What a screen reader says of a row. */
export function describe(row: Row): string {
  const { node } = row;
  const track = node.track;
  // Equal to the visible text: voice control uses the words on the screen.
  const words = [[visible(node.name), visible(node.detail ?? "")].filter((word) => word !== "").join(" ")];
  if (track !== undefined && track.kind === "counter") words.push(`counter from ${valueLabel(track.low ?? 0, track.unit)} to ${valueLabel(track.high ?? 0, track.unit)}`);
  else if (track !== undefined) words.push(`${count(track.events)} events`, `busy ${percent(track.end > track.begin ? Math.min(track.busy / (track.end - track.begin), 1) : 0)}`);
  if (row.pinned) words.push("pinned");
  return words.filter((word) => word !== "").join(", ");
}

function onKey(event: KeyboardEvent, row: Row, rows: readonly Row[]): void {
  const at = rows.indexOf(row);
  const to = (next: Row | undefined): void => {
    if (next === undefined) return;
    focusedRow.value = next.key;
    bringRow(next);
  };
  if (event.ctrlKey || event.metaKey) return;
  if (event.altKey) {
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      nudge(row, event.key === "ArrowUp" ? -1 : 1);
      event.preventDefault();
    }
    return;
  }
  switch (event.key) {
    case "ArrowDown": to(rows[at + 1]); break;
    case "ArrowUp": to(rows[at - 1]); break;
    case "Home": to(rows[0]); break;
    case "End": to(rows.at(-1)); break;
    case "ArrowRight":
      if (row.open === false) toggleOpen(row);
      else if (row.open === true) to(rows[at + 1]);
      else document.querySelector<HTMLElement>(".tl-events")?.focus();
      break;
    case "ArrowLeft":
      if (row.open === true) toggleOpen(row);
      else to(rows.slice(0, at).findLast((one) => one.depth < row.depth));
      break;
    case "Enter":
    case " ":
      if (row.open !== null) toggleOpen(row);
      else if (row.more > 0) toggleLanes(row);
      break;
    case "p": togglePin(row); break;
    case "h":
    case "Delete":
      to(rows[at + 1] ?? rows[at - 1]);
      hide(row);
      break;
    default: return;
  }
  event.preventDefault();
}

function Header({ row, rows, focusable }: { row: Row; rows: readonly Row[]; focusable: boolean }) {
  const element = useRef<HTMLDivElement>(null);
  const focused = focusedRow.value === row.key;
  useEffect(() => {
    // Only follow where the focus already is in the tree: a click on the canvas must not move it.
    if (focused && element.current?.closest("[role=tree]")?.contains(document.activeElement)) element.current.focus({ preventScroll: true });
  }, [focused]);
  const { node } = row;
  const isAll = row.more === 0 && row.lanes > FEW_LANES;
  return (
    <div
      ref={element} role="treeitem" aria-level={row.depth + 1} aria-setsize={row.sisters} aria-posinset={row.place} aria-label={describe(row)}
      {...(row.open === null ? {} : { "aria-expanded": row.open })} aria-selected={focused} tabIndex={focusable ? 0 : -1} data-key={row.key}
      class={`tl-head tl-${row.style}${row.depth === 0 ? " tl-top-level" : ""}${focused ? " tl-focused" : ""}`}
      style={{ top: `${row.y}px`, height: `${row.height}px`, paddingLeft: `${6 + row.depth * 11}px` }}
      title={`${visible(node.name)}${node.detail === undefined ? "" : `\n${visible(node.detail)}`}`}
      onFocus={() => (focusedRow.value = row.key)} onKeyDown={(event) => onKey(event, row, rows)}
      onPointerDown={(event) => dragRow(event, row)} onDblClick={() => toggleOpen(row)}
    >
      <button
        type="button" tabIndex={-1} aria-hidden="true" class={`tl-caret${row.open === null ? " tl-none" : ""}`} onClick={() => toggleOpen(row)}
      >{row.open === true ? "▾" : "▸"}</button>
      <span class="tl-name" dir="auto">{visible(node.name)}</span>
      {node.detail !== undefined && <> <span class="tl-detail">{visible(node.detail)}</span></>}
      {row.more > 0 && (
        <button type="button" tabIndex={-1} aria-hidden="true" class="tl-lanes" title={`Show ${row.more} more lanes`} aria-label={`Show ${row.more} more lanes`} onClick={() => toggleLanes(row)}>
          +{row.more}
        </button>
      )}
      {isAll && <button type="button" tabIndex={-1} class="tl-lanes" title="Show fewer lanes" aria-label="Show fewer lanes" onClick={() => toggleLanes(row)}>−</button>}
      {rested.value && <Tools row={row} />}
    </div>
  );
}

/** What is seen of a row that is pointed at: not before there is time to make it for all of them. */
function Tools({ row }: { row: Row }) {
  const name = visible(row.node.name);
  return (
    <span class="tl-tools">
      <button
        type="button" tabIndex={-1} class={`tl-tool tl-pin${row.pinned ? " tl-on" : ""}`} title={row.pinned ? "Unpin (Shift+P)" : "Pin to the top (Shift+P)"}
        aria-label={`${row.pinned ? "Unpin" : "Pin"} ${name}`} onClick={() => togglePin(row)}
      />
      <button type="button" tabIndex={-1} class="tl-tool" title="Hide (h)" aria-label={`Hide ${name}`} onClick={() => hide(row)}>✕</button>
    </span>
  );
}

/** The rows of one zone; `from` and `to` are what is near the screen, CSS pixels of the zone. */
export function Headers({ pinned, from, to }: { pinned: boolean; from: number; to: number }) {
  const zone = pinned ? layout.value.pinned : layout.value.main;
  const { rows } = zone;
  const shown = rows.length <= ALL_IN_PAGE && rested.value ? rows : rows.filter((row) => (row.y < to && row.y + row.height > from) || row.key === focusedRow.value);
  const first = rows.some((row) => row.key === focusedRow.value) ? focusedRow.value : rows[0]?.key;
  return (
    <div role="tree" aria-label={pinned ? "Pinned tracks" : "Tracks"} class="tl-tree" style={{ height: `${zone.height}px`, width: `${headerWidth.value}px` }}>
      {shown.map((row) => <Header key={row.key} row={row} rows={rows} focusable={row.key === first} />)}
    </div>
  );
}
