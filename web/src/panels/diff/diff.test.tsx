/** Tests the panel of two reports: changes, and aligning them. */
import { expect, test } from "vitest";
import { difference, offsets, view } from "../../app/state";
import type { Difference } from "../../data/types";
import { click, draw, fake, load, until } from "../testing/fake";
import { DiffPanel } from "./diff";

const DIFFERENCE: Difference = {
  tables: [{ title: "Kernels", columns: [{ name: "Name", unit: null, kind: "text" }], rows: [["gemm"]] }],
  anchors: [{ label: "step 0", a: 100, b: 40 }, { label: "step 1", a: 200, b: 260 }],
};

test("one report has nothing to be compared with", () => {
  load(fake());
  expect(draw(DiffPanel).textContent).toContain("warplens view BEFORE AFTER");
});

test("steps of both are laid on each other, one after the other", async () => {
  load(fake({ difference: async () => DIFFERENCE }), 2);
  const place = draw(DiffPanel);
  const next = await until(() => [...place.querySelectorAll("button")].find((one) => one.textContent === "Next"));
  expect(difference.value).toEqual(DIFFERENCE);
  click(next);
  expect(offsets.value).toEqual([0, 60]);
  expect(view.value.begin).toBeLessThan(100);
  expect(view.value.end).toBeGreaterThan(100);
  click(next);
  expect(offsets.value).toEqual([0, -60]);
  await until(() => place.querySelector("select")!.value === "1");
  click(await until(() => [...place.querySelectorAll("button")].find((one) => one.textContent === "At their begins")));
  expect(offsets.value).toEqual([0, 0]);
  await until(() => place.querySelector('[role="grid"]')?.textContent?.includes("gemm"));
});
