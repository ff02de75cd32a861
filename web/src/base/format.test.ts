/** Tests how numbers are formatted. */
import { expect, it } from "vitest";
import { count, many, moment, momentIn, percent, size, time } from "./format";

it("writes times in the unit that fits", () => {
  expect([0, 1, 999, 1000, 1234, 12_345, 123_456, 999_999, 1.5e9, 3.6e12, -2500].map(time)).toEqual(
    ["0 ns", "1 ns", "999 ns", "1.00 us", "1.23 us", "12.3 us", "123 us", "1,000 us", "1.50 s", "3,600 s", "-2.50 us"],
  );
  expect(time(0.25)).toBe("0.25 ns");
});

it("writes sizes, numbers and shares", () => {
  expect([0, 1023, 1024, 1.5 * 2 ** 30].map(size)).toEqual(["0 B", "1023 B", "1.00 KiB", "1.50 GiB"]);
  expect([1234567, 1234.5678].map(count)).toEqual(["1,234,567", "1,234.568"]);
  expect([0, 0.0005, 0.123, 1].map(percent)).toEqual(["0.00 %", "0.05 %", "12.3 %", "100.0 %"]);
  expect([many(1, "event"), many(2000, "event"), many(0, "match", "matches")]).toEqual(["1 event", "2,000 events", "0 matches"]);
});

it("writes points in time with the digits that matter", () => {
  expect([moment(1_500_000_000), moment(1)]).toEqual(["1.500000 s", "0.000000001 s"]);
  expect([momentIn(1.23456789e9, 10e9), momentIn(1.23456789e9, 1e6), momentIn(1.23456789e9, 10)]).toEqual(["1.23 s", "1.234568 s", "1.234567890 s"]);
});
