/** Tables as CSV. */
import { expect, test } from "vitest";
import type { Column } from "../../../data/types";
import { csv } from "./csv";

const COLUMNS: Column[] = [{ name: "Name", unit: null, kind: "text" }, { name: "Total Time", unit: "ns", kind: "number" }];

test("units are in the heads, once", () => {
  expect(csv({ columns: [...COLUMNS, { name: "Max (ns)", unit: "ns", kind: "number" }], rows: [] })).toBe("Name,Total Time (ns),Max (ns)\r\n");
});

test("whole numbers, nothing for what is not known, quotes where they are needed", () => {
  const rows = [["a", 1234567890123], ['say "x", y', null], ["two\nlines", 0.1]];
  expect(csv({ columns: COLUMNS, rows })).toBe('Name,Total Time (ns)\r\na,1234567890123\r\n"say ""x"", y",\r\n"two\nlines",0.1\r\n');
});

test("only the rows that are seen, in their order", () => {
  expect(csv({ columns: COLUMNS, rows: [["a", 1], ["b", 2], ["c", 3]] }, [2, 0])).toBe("Name,Total Time (ns)\r\nc,3\r\na,1\r\n");
});

test("a name is no formula, a negative number stays one", () => {
  expect(csv({ columns: COLUMNS, rows: [["=cmd()", -5], ["@x", 1]] })).toContain("'=cmd(),-5\r\n'@x,1");
});
