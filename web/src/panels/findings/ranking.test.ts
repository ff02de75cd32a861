/** Tests the order of findings. */
import { expect, test } from "vitest";
import type { Finding } from "../../data/types";
import { ranked, shares } from "./ranking";

export function finding(rule: string, severity: Finding["severity"], bound: number | null, estimate: number | null = null): Finding {
  return { rule, subject: "", title: rule, cause: "c", fix: "f", link: "", severity, confidence: "high", bound, estimate, shared: 0, occurrences: 1, wrongWhen: "", evidence: [] };
}

test("the gravest first, of one severity the dearest", () => {
  const all = [finding("info", "info", null), finding("low", "low", 900), finding("cheap", "high", 500, 100), finding("dear", "high", 300, 200), finding("bound", "high", 150)];
  expect(ranked(all).map((one) => one.rule)).toEqual(["dear", "bound", "cheap", "low", "info"]);
});

test("shares of the run", () => {
  expect(shares(finding("x", "high", 500, 100), 1000)).toEqual({ share: 0.1, most: 0.5 });
  expect(shares(finding("x", "high", 500), 1000)).toEqual({ share: 0.5, most: 0.5 });
  expect(shares(finding("x", "info", null), 1000)).toBeNull();
});
