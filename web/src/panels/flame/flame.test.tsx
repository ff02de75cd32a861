/** Tests the panel of flame graphs: the first kind with data, zoom by keys, tree and list. */
import { expect, test } from "vitest";
import { click, draw, fake, load, press, type, until } from "../testing/fake";
import { FlamePanel } from "./flame";

const tab = (place: Element, name: string) => [...place.querySelectorAll('[role="tab"]')].find((one) => one.textContent === name)!;

test("shows the first kind that has something", async () => {
  load(fake());
  const place = draw(FlamePanel);
  await until(() => place.querySelector('[role="tree"]'));
  expect(tab(place, "NVTX").getAttribute("aria-selected")).toBe("true");
});

test("keys select boxes, announce them to screen readers, and zoom", async () => {
  load(fake());
  const place = draw(FlamePanel);
  const graph = await until(() => place.querySelector('[role="tree"]'));
  press(graph, "ArrowDown");
  press(graph, "ArrowDown");
  const item = await until(() => place.querySelector('[role="treeitem"]')?.textContent === "step: 80 ns, 80.0 %, itself 30 ns" && place.querySelector('[role="treeitem"]'));
  expect(graph.getAttribute("aria-activedescendant")).toBe(item.id);
  press(graph, "Enter");
  await until(() => place.querySelector('[aria-label="Zoomed to"] b')?.textContent === "step");
  press(graph, "Escape");
  await until(() => place.querySelector('[aria-label="Zoomed to"] b')?.textContent === "all");
});

test("lights up names and says how much they are", async () => {
  load(fake());
  const place = draw(FlamePanel);
  await until(() => place.querySelector('[role="tree"]'));
  type(place.querySelector('input[type="search"]')!, "FORW");
  expect(await until(() => place.textContent!.includes("50 ns in 1 boxes, 50.0 %") || place.textContent!.includes("50 ns in 1 box, 50.0 %"))).toBeTruthy();
});

test("as a tree of rows, opened by keys", async () => {
  load(fake());
  const place = draw(FlamePanel);
  await until(() => place.querySelector('[role="tree"]'));
  click(tab(place, "Call tree"));
  const grid = await until(() => place.querySelector('[role="treegrid"]'));
  expect(grid.getAttribute("aria-rowcount")).toBe("3"); // the way that holds most is open
  press(grid, "ArrowLeft");
  await until(() => grid.getAttribute("aria-rowcount") === "2");
  press(grid, "ArrowRight");
  await until(() => grid.getAttribute("aria-rowcount") === "3");
});

test("as a list by name", async () => {
  load(fake());
  const place = draw(FlamePanel);
  await until(() => place.querySelector('[role="tree"]'));
  click(tab(place, "By name"));
  expect(await until(() => place.querySelector('[role="grid"]')?.textContent?.includes("forward"))).toBeTruthy();
});

test("a kind without data says how to get it", async () => {
  load(fake());
  const place = draw(FlamePanel);
  await until(() => place.querySelector('[role="tree"]'));
  click(tab(place, "CPU samples"));
  expect(await until(() => place.textContent!.includes("--sample=process-tree"))).toBeTruthy();
  click(tab(place, "Tasks"));
  expect(await until(() => place.textContent!.includes("No asyncio tasks."))).toBeTruthy();
});
