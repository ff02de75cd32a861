/** Tests the panel of stats: the choice of tables, and the marked range alone. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { ranges } from "../../app/state";
import { click, draw, fake, load, press, until } from "../testing/fake";
import { StatsPanel } from "./stats";

test("tables with data to choose from, those without told", async () => {
  load(fake());
  const place = draw(StatsPanel);
  await until(() => place.querySelector('[role="grid"]'));
  expect([...place.querySelectorAll('[role="option"]')].map((one) => one.textContent)).toEqual(["CUDA GPU Kernel Summary"]);
  expect(place.textContent).toContain("1 without data");
});

test("arrows choose the next table", async () => {
  load(fake({ statList: async () => ["first", "second"].map((name) => ({ name, title: name.toUpperCase(), available: true })) }));
  const place = draw(StatsPanel);
  await until(() => place.querySelector('[role="grid"]')?.getAttribute("aria-label") === "first");
  press(place.querySelector('[role="listbox"]')!, "ArrowDown");
  expect(await until(() => place.querySelector('[role="grid"]')?.getAttribute("aria-label") === "second")).toBeTruthy();
});

test("the table that was chosen is there again", async () => {
  load(fake({ statList: async () => ["first", "second"].map((name) => ({ name, title: name.toUpperCase(), available: true })) }));
  const before = draw(StatsPanel);
  click(await until(() => before.querySelector("#stat-second")));
  void act(() => render(null, before));
  const place = draw(StatsPanel);
  expect(await until(() => place.querySelector('[role="grid"]')?.getAttribute("aria-label") === "second")).toBeTruthy();
});

test("of the marked range, in the times of the report", async () => {
  load(fake());
  const place = draw(StatsPanel);
  const box = await until(() => place.querySelector<HTMLInputElement>('input[type="checkbox"]'));
  expect(box.disabled).toBe(true);
  void act(() => void (ranges.value = [{ begin: 100, end: 200 }]));
  await until(() => !place.querySelector<HTMLInputElement>('input[type="checkbox"]')!.disabled);
  click(place.querySelector('input[type="checkbox"]')!);
  await until(() => place.textContent!.includes("cuda_gpu_kern_sum of 100 to 200"));
});

test("a report without any data", async () => {
  load(fake({ statList: async () => [] }));
  const place = draw(StatsPanel);
  expect(await until(() => place.textContent!.includes("This report has no data for any table."))).toBeTruthy();
});
