/** Sums by name and matches. */
import { expect, test } from "vitest";
import { node } from "../testing/data";
import { byName, matched } from "./sums";
import { hottest, rowsOf } from "./tree";

const ROOT = node("all", 100, [node("f", 70, [node("g", 40, [node("f", 30)])]), node("g", 30)]);

test("a name that calls itself counts once", () => {
  expect(byName(ROOT)).toEqual([{ name: "f", self: 60, total: 70 }, { name: "g", self: 40, total: 70 }]);
});

test("what is in a match counts once", () => {
  const hits = matched(ROOT, (name) => name === "f");
  expect(hits.value).toBe(70);
  expect(hits.nodes.size).toBe(2);
  expect(matched(ROOT, (name) => name === "all").nodes.size).toBe(0);
});

test("rows of a tree: children of what is open, with who holds them", () => {
  const [f, g] = ROOT.children;
  expect(rowsOf(ROOT, new Set()).map((row) => row.node)).toEqual([f, g]);
  expect(rowsOf(ROOT, new Set([f!])).map((row) => [row.node.name, row.level, row.parent])).toEqual([["f", 1, -1], ["g", 2, 0], ["g", 1, -1]]);
  expect(hottest(ROOT).has(f!)).toBe(true);
  expect(hottest(ROOT).has(g!)).toBe(false);
});
