/** Boxes of numbered names. */
import { expect, test } from "vitest";
import { node } from "../testing/data";
import { merged } from "./merge";

test("numbered operations are one box, and so are those in them", () => {
  const root = node("all", 100, [
    node("aten::mm, op_id = 1", 30, [node("aten::to, seq = 4, op_id = 2", 10)]),
    node("aten::mm, op_id = 7", 50, [node("aten::to, op_id = 8", 20), node("x = 5", 5)]),
  ]);
  expect(merged(root)).toEqual(node("all", 100, [node("aten::mm", 80, [node("aten::to", 30), node("x = 5", 5)])]));
});

test("what has no numbers stays as it is", () => {
  const root = node("all", 10, [node("a", 5), node("a", 5)]);
  expect(merged(root)).toBe(root);
});
