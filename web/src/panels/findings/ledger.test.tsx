/** The ledger: all time by cause, each row with its finding or why there is none. */
import { expect, test } from "vitest";
import type { Finding, Findings, Table } from "../../data/types";
import { click, draw, fake, load, until } from "../testing/fake";
import { FindingsPanel } from "./findings";
import { entries, judged, places } from "./ledger";

const finding = (rule: string, title: string, estimate: number): Finding => ({
  rule, subject: title, title, cause: "", fix: "", link: "", severity: "high", confidence: "high", bound: estimate, estimate, shared: 0, occurrences: 1, wrongWhen: "", evidence: [],
});
const FOUND: Findings = {
  findings: [finding("gc_pauses", "Python stood still", 40), finding("hot_function", "price holds it", 10), finding("hot_function", "parse holds it", 30)],
  notJudged: [{ rule: "gil_contention", why: "the report does not contain Python GIL data." }],
  silent: ["small_kernels"],
};
const TABLE: Table = {
  title: "ledger",
  columns: [
    { name: "Time", unit: "%", kind: "number" }, { name: "Time", unit: "ns", kind: "number" }, { name: "Where", unit: null, kind: "text" },
    { name: "Cause", unit: null, kind: "text" }, { name: "Most", unit: null, kind: "text" }, { name: "Rules", unit: null, kind: "text" },
  ],
  rows: [
    [75, 750, "main", "Python function", "parse", "hot_function, gpu_waits_for_cpu"],
    [25, 250, "main", "GIL wait", null, "gil_contention"],
  ],
};

test("a cause has the dearest finding of its rules, or the reason why it has none", () => {
  expect(judged(["gpu_gaps", "hot_function"], FOUND)).toBe(FOUND.findings[2]);
  expect(judged(["gil_contention"], FOUND)).toBe("not judged: the report does not contain Python GIL data.");
  expect(judged(["small_kernels", "gil_contention"], FOUND)).toBe("looked at, nothing found");
  expect(judged(["none: the report does not say"], FOUND)).toBe("not judged: no rule looks at it");
});

test("rows stand below what they are about, which is named once", () => {
  const [main, ...others] = places(entries(TABLE));
  expect(others).toEqual([]);
  expect(main?.[0]).toBe("main");
  expect(main?.[1].map((one) => one.cause)).toEqual(["Python function", "GIL wait"]);
});

test("it is asked for when it is opened, and leads to findings", async () => {
  const asked: string[] = [];
  load(fake({ findings: async () => FOUND, stat: async (_report, name) => (asked.push(name), TABLE) }));
  const place = draw(FindingsPanel);
  const ledger = await until(() => place.querySelector<HTMLDetailsElement>("details.p-ledger"));
  expect(asked).toEqual([]);
  ledger.open = true;
  ledger.dispatchEvent(new Event("toggle"));
  const link = await until(() => ledger.querySelector<HTMLButtonElement>("button.p-link"));
  expect(asked).toEqual(["time_ledger"]);
  expect(ledger.textContent).toContain("Python GIL data");
  click(link);
  await until(() => place.querySelector('[aria-selected="true"]')?.textContent?.includes("parse holds it"));
});
