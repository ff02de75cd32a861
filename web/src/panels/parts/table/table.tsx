/** A table as panels show it: title, filter, count, copy as CSV, then the grid; rows with links jump to the timeline. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Table } from "../../../data/types";
import { Empty } from "../answer";
import { copy } from "./clipboard";
import { csv } from "./csv";
import { Grid } from "./grid";
import { goTo } from "../jump";
import type { Order } from "./sorting";
import { arranged } from "./sorting";
import { count, many } from "./units";

interface Props {
  table: Table;
  /** Opens rows that have no link; `opens` says which. */
  onOpen?: (row: number) => void;
  opens?: (row: number) => boolean;
  openTitle?: string;
  /** Said where there are no rows. */
  empty?: string;
  /** Stands before the filter; with `untitled` instead of the title, where tabs say it. */
  children?: ComponentChildren;
  untitled?: boolean;
}

/** Draw it with its tools. */
export function TableView({ table, onOpen, opens, openTitle, empty = "No rows.", children, untitled = false }: Props) {
  const [sorted, setSorted] = useState<Order | null>(null);
  const [filter, setFilter] = useState("");
  const heads = table.columns.map((column) => column.name).join("\n");
  useEffect(() => setSorted(null), [heads]);
  const order = useMemo(() => arranged(table.rows, sorted !== null && sorted.column < table.columns.length ? sorted : null, filter), [table, sorted, filter]);
  const links = table.links;
  const linked = (row: number) => (links?.[row] ?? null) !== null;
  const open = (row: number) => {
    const link = links?.[row];
    if (link) goTo(link);
    else onOpen?.(row);
  };
  const some = links?.some((link) => link !== null) === true;
  return (
    <section class="p-table" aria-label={table.title}>
      <div class="p-bar">
        {!untitled && <h3 title={table.title}>{table.title}</h3>}
        {children}
        <span class="p-space" />
        <input type="search" value={filter} placeholder="Filter: words or /regex/" aria-label={`Filter the rows of ${table.title}`}
          onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="p-dim" role="status">{counted(order.length, table)}</span>
        <button type="button" disabled={order.length === 0} onClick={() => void copy(csv(table, order), `${many(order.length, "row")} as CSV`)}>
          Copy CSV
        </button>
      </div>
      {table.note && <p class="p-note">{table.note}</p>}
      {table.rows.length === 0 ? <Empty>{empty}</Empty> : order.length === 0 ? <Empty>No row matches the filter “{filter}”.</Empty> : (
        <Grid label={table.title} columns={table.columns} rows={table.rows} order={order} sorted={sorted} onSort={setSorted}
          {...(some || onOpen ? { onOpen: open, opens: (row: number) => linked(row) || (onOpen !== undefined && (opens?.(row) ?? true)), openTitle: openTitle ?? "Show on the timeline" } : {})} />
      )}
    </section>
  );
}

function counted(left: number, table: Table): string {
  const all = `${count(table.rows.length)}${table.cut ? "+" : ""} ${table.rows.length === 1 ? "row" : "rows"}`;
  return (left === table.rows.length ? all : `${count(left)} of ${all}`) + (table.cut ? " (there are more)" : "");
}
