/** Tests tables: only visible rows are drawn; sorted, filtered, copied, walked by keys. */
import { h } from "preact";
import { expect, test, vi } from "vitest";
import { notice, selected } from "../../../app/state";
import type { Table } from "../../../data/types";
import { HITS, click, draw, press, type, until } from "../../testing/fake";
import { TableView } from "./table";

const LONG: Table = {
  title: "Kernels",
  columns: [{ name: "Name", unit: null, kind: "text" }, { name: "Time", unit: "ns", kind: "number" }, { name: "Time (%)", unit: "%", kind: "number" }],
  rows: Array.from({ length: 10_000 }, (_, i) => [`kernel ${i}`, i * 1000, i / 100]),
};

const view = (table: Table) => draw(() => h(TableView, { table }));
const rows = (place: Element) => [...place.querySelectorAll('tbody [role="row"]')];
const names = (place: Element) => rows(place).slice(0, 3).map((row) => row.firstElementChild!.textContent);

test("a grid with all its counts and few rows of the page", async () => {
  const place = view(LONG);
  const grid = await until(() => place.querySelector('[role="grid"]'));
  expect(grid.getAttribute("aria-rowcount")).toBe("10001");
  expect(rows(place).length).toBeLessThan(100);
  expect(names(place)).toEqual(["kernel 0", "kernel 1", "kernel 2"]);
  expect(place.textContent).toContain("10,000 rows");
});

test("heads sort", async () => {
  const place = view(LONG);
  const head = await until(() => place.querySelectorAll("th button")[1]);
  click(head);
  await until(() => names(place)[0] === "kernel 9999");
  expect(place.querySelectorAll("th")[1]!.getAttribute("aria-sort")).toBe("descending");
  click(head);
  await until(() => names(place)[0] === "kernel 0");
});

test("filters, and says when nothing is left", async () => {
  const place = view(LONG);
  const field = await until(() => place.querySelector("input"));
  type(field, "kernel 999");
  await until(() => place.textContent!.includes("19 of 10,000 rows"));
  type(field, "nothing like it");
  expect(await until(() => place.textContent!.includes("No row matches the filter “nothing like it”."))).toBeTruthy();
});

test("copies what is seen", async () => {
  const write = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", { clipboard: { writeText: write } });
  const place = view({ ...LONG, rows: [["a", 1, 2]] });
  click(await until(() => [...place.querySelectorAll("button")].find((one) => one.textContent === "Copy CSV")));
  await until(() => notice.value === "Copied 1 row as CSV.");
  expect(write).toHaveBeenCalledWith("Name,Time (ns),Time (%)\r\na,1,2\r\n");
  vi.unstubAllGlobals();
});

test("keys walk and Enter goes to what has a place", async () => {
  const place = view({ ...LONG, rows: [["a", 1, 2], ["b", 3, 4]], links: [null, HITS[2]!] });
  const grid = await until(() => place.querySelector('[role="grid"]'));
  press(grid, "ArrowDown");
  press(grid, "Enter");
  expect(selected.value).toBeNull();
  press(grid, "ArrowDown");
  await until(() => rows(place)[1]!.getAttribute("aria-selected") === "true");
  expect(grid.getAttribute("aria-activedescendant")).toBe(rows(place)[1]!.id);
  press(grid, "Enter");
  expect(selected.value).toEqual(HITS[2]);
});

test("names are text and nothing else, however long", async () => {
  const place = view({ ...LONG, rows: [[`<b>x</b>\u0000\u202e${"y".repeat(100_000)}`, 1, 2]] });
  const cell = await until(() => rows(place)[0]?.firstElementChild);
  expect(place.querySelector("b")).toBeNull();
  expect(cell.textContent).toContain("<b>x</b>\\0[RLO]yyy");
  expect(cell.textContent!.length).toBeLessThan(1000);
});
