/** Tests how cells of tables are formatted. */
import { expect, test } from "vitest";
import { quantity, shown } from "./units";

test("values by their unit", () => {
  expect(quantity(1_500_000, "ns")).toBe("1.50 ms");
  expect(quantity(3 * 2 ** 20, "bytes")).toBe("3.00 MiB");
  expect(quantity(27_681_016_760, "bytes/s")).toBe("25.8 GiB/s");
  expect(quantity(12.5, "%")).toBe("12.5 %");
  expect(quantity(12_345, "MB")).toBe("12,345 MB");
  expect(quantity(null, "ns")).toBe("–");
  expect(quantity(false, null)).toBe("no");
});

test("points in time are seconds, names of things have no commas", () => {
  expect(shown(1_500_000_000, { name: "Start", unit: "ns", kind: "time" })).toBe("1.500000 s");
  expect(shown(4711_000, { name: "PID", unit: null, kind: "number" })).toBe("4711000");
  expect(shown(4711_000, { name: "Instances", unit: null, kind: "number" })).toBe("4,711,000");
});

test("names keep nothing that cannot be seen", () => {
  expect(shown("a\u0000b\u202ec", { name: "Name", unit: null, kind: "text" })).toBe("a\\0b[RLO]c");
});
