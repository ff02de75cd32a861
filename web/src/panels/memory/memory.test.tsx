/** The panel of memory: curves that can be left out, tables beside them. */
import { expect, test } from "vitest";
import { trees } from "../../app/state";
import { click, draw, fake, load, until } from "../testing/fake";
import { MemoryPanel } from "./memory";

const STAT = { name: "gpu_memory_sum", title: "GPU Memory Summary", available: true };

test("curves with their peaks; one is left out", async () => {
  load(fake());
  const place = draw(MemoryPanel);
  await until(() => place.querySelector('[role="img"]')?.getAttribute("aria-label") === "Memory over time: Memory · GPU 0, peak 2.00 KiB");
  click(place.querySelector('fieldset input[type="checkbox"]')!);
  expect(await until(() => place.textContent!.includes("No curve is chosen."))).toBeTruthy();
});

test("tables about memory", async () => {
  load(fake({ statList: async () => [STAT] }));
  const place = draw(MemoryPanel);
  click(await until(() => [...place.querySelectorAll('[role="tab"]')].find((one) => one.textContent === "GPU Memory Summary")));
  expect(await until(() => place.querySelector('[role="grid"]')?.getAttribute("aria-label") === "gpu_memory_sum")).toBeTruthy();
});

test("nothing about memory, and how to get it", async () => {
  load(fake({ statList: async () => [] }));
  trees.value = [[]];
  const place = draw(MemoryPanel);
  expect(await until(() => place.textContent!.includes("--cuda-memory-usage=true"))).toBeTruthy();
});
