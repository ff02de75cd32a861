/** Boxes of flame graphs, and the ways between them. */
import { expect, test } from "vitest";
import { node } from "../testing/data";
import { icicle, levels, neighbour, parentsOf, pathTo, trunk } from "./layout";

const LEAF = node("leaf", 30);
const SMALL = node("small", 10);
const LARGE = node("large", 60, [LEAF]);
const ROOT = node("all", 100, [SMALL, LARGE]);
const PARENTS = parentsOf(ROOT);

test("children are as wide as their share, the greatest first", () => {
  const boxes = icicle([ROOT], 1000, 1);
  const of = (name: string) => boxes.find((box) => box.node.name === name)!;
  expect(of("all")).toMatchObject({ x: 0, width: 1000, depth: 0 });
  expect(of("large")).toMatchObject({ x: 0, width: 600, depth: 1 });
  expect(of("small")).toMatchObject({ x: 600, width: 100, depth: 1 });
  expect(of("leaf")).toMatchObject({ x: 0, width: 300, depth: 2 });
  expect(levels(boxes)).toBe(3);
});

test("what is zoomed to fills the width, what is above it stays", () => {
  const boxes = icicle(pathTo(LARGE, PARENTS), 1000, 1);
  expect(boxes.map((box) => [box.node.name, Math.round(box.width)])).toEqual([["all", 1000], ["large", 1000], ["leaf", 500]]);
});

test("what is too narrow is left out with all it holds", () => {
  expect(icicle([ROOT], 50, 6).map((box) => box.node.name).sort()).toEqual(["all", "large", "leaf"]);
  expect(icicle([node("all", 0)], 50, 6)).toHaveLength(1);
});

test("keys walk: along siblings, down to the greatest, up", () => {
  expect(neighbour(ROOT, "ArrowDown", PARENTS)).toBe(LARGE);
  expect(neighbour(LARGE, "ArrowRight", PARENTS)).toBe(SMALL);
  expect(neighbour(SMALL, "ArrowLeft", PARENTS)).toBe(LARGE);
  expect(neighbour(SMALL, "ArrowRight", PARENTS)).toBeNull();
  expect(neighbour(LEAF, "ArrowUp", PARENTS)).toBe(LARGE);
  expect(neighbour(ROOT, "ArrowUp", PARENTS)).toBeNull();
});

test("stacks as deep as programs make them", () => {
  let deep = node("f", 1);
  for (let i = 0; i < 20_000; i++) deep = { name: "f", value: 1, self: 0, children: [deep] };
  const parents = parentsOf(deep);
  expect(parents.size).toBe(20_000);
  expect(levels(icicle([deep], 100, 1))).toBe(20_001);
});

test("the trunk ends where a graph parts", () => {
  const fork = node("fork", 97, [node("left", 60, [node("l", 60)]), node("right", 30)]);
  const way = [node("all", 100, [node("start", 99, [fork])])];
  expect(trunk(way[0]!).map((one) => one.name)).toEqual(["all", "start", "fork"]);
  expect(trunk(node("all", 100, [node("leaf", 100)])).map((one) => one.name)).toEqual(["all"]);
});
