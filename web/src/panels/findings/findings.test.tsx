/** The panel of findings: order, prices, evidence that jumps, what was not judged. */
import { expect, test } from "vitest";
import { ranges, selected, view } from "../../app/state";
import type { Finding, Findings } from "../../data/types";
import { HITS, click, draw, fake, load, press, until } from "../testing/fake";
import { FindingsPanel } from "./findings";

function finding(title: string, severity: Finding["severity"], bound: number | null, more: Partial<Finding> = {}): Finding {
  return { rule: title, subject: "", title, cause: "because", fix: "do this", link: "https://example.org/x", severity, confidence: "high", bound, estimate: null, shared: 0, occurrences: 2, wrongWhen: "never", evidence: [], ...more };
}

const FOUND: Findings = {
  findings: [
    finding("small", "low", 10),
    finding("<img src=x onerror=alert(1)>", "high", 500, { estimate: 250, evidence: [{ text: "a copy", start: 300, end: 310, event: HITS[1]! }, { text: "another", start: 700, end: 750, event: null }] }),
  ],
  notJudged: [{ rule: "gpu_gaps", why: "the report does not contain CUDA data." }],
  silent: ["gc_pauses", "late_imports"],
};

test("the dearest is first and open, with what it costs, why, what to do", async () => {
  load(fake({ findings: async () => FOUND }));
  const place = draw(FindingsPanel);
  const options = await until(() => place.querySelectorAll('[role="option"]').length === 2 && [...place.querySelectorAll('[role="option"]')]);
  expect(options[0]!.getAttribute("aria-selected")).toBe("true");
  expect(options[0]!.textContent).toContain("<img src=x onerror=alert(1)>");
  expect(place.querySelector("img")).toBeNull();
  const text = place.querySelector("article")!.textContent;
  expect(text).toContain("Expected saving: 250 ns (25.0 % of the run), at most 500 ns (50.0 %).");
  expect(text).not.toContain("of it, too");
  for (const words of ["because", "do this", "Limits", "never", "Seen 2 times"]) expect(text).toContain(words);
  expect(place.querySelector("article a")!.getAttribute("rel")).toContain("noopener");
  expect(place.textContent).toContain("1 rule could not be judged");
  expect(place.textContent).toContain("the report does not contain CUDA data.");
  expect(place.textContent).toContain("gc_pauses, late_imports");
});

test("a finding shows the part that other findings save, too", async () => {
  load(fake({ findings: async () => ({ ...FOUND, findings: [finding("both", "high", 500, { estimate: 250, shared: 100 })] }) }));
  const place = draw(FindingsPanel);
  const price = await until(() => place.querySelector(".p-finding-price"));
  expect(price.textContent).toContain("at most 500 ns (50.0 %). Other findings save 100 ns of it, too.");
});

test("evidence jumps and marks its time, with an event or without", async () => {
  load(fake({ findings: async () => FOUND }));
  const place = draw(FindingsPanel);
  const rows = await until(() => place.querySelectorAll("article .p-jump").length === 2 && [...place.querySelectorAll("article .p-jump")]);
  click(rows[0]!);
  expect(selected.value).toEqual(HITS[1]);
  expect(ranges.value).toEqual([{ begin: 300, end: 310 }]);
  click(rows[1]!);
  expect(ranges.value).toEqual([{ begin: 700, end: 750 }]);
  expect(view.value.begin).toBeLessThan(700);
  expect(view.value.end).toBeGreaterThan(750);
});

test("arrows choose, Enter jumps", async () => {
  load(fake({ findings: async () => FOUND }));
  const place = draw(FindingsPanel);
  const list = await until(() => place.querySelector('[role="listbox"]'));
  press(list, "ArrowDown");
  await until(() => place.querySelector("article h3")!.textContent!.includes("small"));
  press(list, "ArrowUp");
  await until(() => !place.querySelector("article h3")!.textContent!.includes("small"));
  press(list, "Enter");
  expect(selected.value).toEqual(HITS[1]);
});

test("shows a message without findings, and a failure with a button to try again", async () => {
  let fail = true;
  load(fake({ findings: async () => (fail ? Promise.reject(new Error("out of memory")) : { findings: [], notJudged: [], silent: [] }) }));
  const place = draw(FindingsPanel);
  expect(place.textContent).toContain("Loading the findings");
  const alert = await until(() => place.querySelector('[role="alert"]'));
  expect(alert.textContent).toContain("The findings could not be loaded: out of memory");
  fail = false;
  click(alert.querySelector("button")!);
  await until(() => place.textContent!.includes("The rules that could judge found nothing."));
});

test("a link that is no web address is no link", async () => {
  load(fake({ findings: async () => ({ ...FOUND, findings: [finding("x", "high", 1, { link: "javascript:alert(1)" })] }) }));
  const place = draw(FindingsPanel);
  await until(() => place.querySelector("article"));
  expect(place.querySelector("article a")).toBeNull();
});
