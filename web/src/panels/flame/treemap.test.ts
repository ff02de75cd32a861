/** Tree maps: areas are shares, nothing lies on a sibling or outside its parent. */
import { expect, test } from "vitest";
import { node } from "../testing/data";
import type { Place } from "./treemap";
import { squarified, treemap } from "./treemap";

const WITHIN = { x: 10, y: 20, width: 300, height: 100 };

function overlap(a: Place, b: Place): number {
  const [wide, high] = [Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x), Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y)];
  return Math.max(wide, 0) * Math.max(high, 0);
}

test("areas are in proportion and fill the rectangle", () => {
  const values = [60, 30, 20, 5, 5];
  const places = squarified(values, WITHIN);
  for (const [i, place] of places.entries()) {
    expect((place.width * place.height) / 30_000).toBeCloseTo(values[i]! / 120, 6);
    for (const other of places.slice(i + 1)) expect(overlap(place, other)).toBeLessThan(1e-6);
    expect(place.x).toBeGreaterThanOrEqual(WITHIN.x);
    expect(place.y + place.height).toBeLessThanOrEqual(WITHIN.y + WITHIN.height + 1e-6);
  }
});

test("equal parts are nearly square", () => {
  for (const place of squarified(Array.from({ length: 12 }, () => 1), { x: 0, y: 0, width: 400, height: 300 })) {
    expect(Math.max(place.width / place.height, place.height / place.width)).toBeLessThan(1.4);
  }
});

test("nothing to share, nothing drawn", () => {
  expect(squarified([0, 0], WITHIN).every((place) => place.width === 0)).toBe(true);
  expect(squarified([], WITHIN)).toEqual([]);
  expect(squarified([3, 0, 0], WITHIN)[0]).toMatchObject({ width: 300, height: 100 });
});

test("children lie within their parent, beside each other, and own time stays free", () => {
  const tiles = treemap(node("all", 100, [node("a", 50, [node("x", 40)]), node("b", 20)]), 600, 400);
  const of = (name: string) => tiles.find((tile) => tile.node.name === name)!;
  expect(overlap(of("a"), of("b"))).toBeLessThan(1e-6);
  expect(overlap(of("x"), of("a"))).toBeCloseTo(of("x").width * of("x").height, 3);
  expect((of("b").width * of("b").height) / (of("a").width * of("a").height)).toBeCloseTo(0.4, 2);
  expect(of("a").width * of("a").height + of("b").width * of("b").height).toBeLessThan(600 * 400 * 0.71);
});

test("what would be too small is left out", () => {
  expect(treemap(node("all", 1_000_000, [node("a", 999_999), node("b", 1)]), 300, 200).map((tile) => tile.node.name)).toEqual(["all", "a"]);
});

test("a long trunk leaves the room to what is behind it", () => {
  const fork = node("fork", 97, [node("left", 60, [node("l", 60)]), node("right", 30)]);
  const tiles = treemap(node("all", 100, [node("a", 100, [node("b", 99, [fork])])]), 600, 400);
  expect(tiles[0]).toMatchObject({ node: { name: "fork" }, depth: 0, width: 600, height: 400 });
  expect(tiles.map((tile) => tile.node.name)).not.toContain("a");
});
