/** The sidebar: fields, payload, stack, links and parents of what is selected. */
import { act } from "preact/test-utils";
import { beforeEach, expect, test } from "vitest";
import { details, found, ranges, select as chosen } from "../testing/state";
import type { EventDetails } from "../../data/types";
import { HITS, click, draw, fake, load, located, until } from "../testing/fake";
import { Details } from "./details";
import { followSelection } from "./loading";

const ALL: EventDetails = {
  event: HITS[1]!,
  title: "void gemm<float>()",
  fields: [{ name: "grid", value: "1×2×3" }, { name: "shared", value: 2048, unit: "bytes" }],
  payload: { loss: 0.5, shape: [1, 2], text: "<script>alert(1)</script>" },
  stack: [{ function: "main", module: "python", file: "/home/x/train.py", line: 12 }],
  links: [{ ...located(7, 200, 5, "cudaLaunchKernel", { table: "cuda_api", track: 1 }), relation: "launch" }],
  parents: [located(5, 0, 900, "epoch", { table: "nvtx_ranges" }), located(6, 50, 500, "step", { table: "nvtx_ranges" })],
};

beforeEach(() => followSelection());

test("nothing is selected", async () => {
  load(fake());
  const place = draw(Details);
  expect(place.textContent).toContain("Nothing is selected.");
});

test("everything that is known, as text", async () => {
  load(fake({ event: async () => ALL }));
  const place = draw(Details);
  void act(() => chosen(HITS[1]!));
  await until(() => place.textContent!.includes("void gemm<float>()"));
  for (const words of ["2.00 KiB", "1×2×3", "loss", "<script>alert(1)</script>", "main", "train.py:12", "Launched by", "100 ns earlier"]) expect(place.textContent).toContain(words);
  expect(place.querySelector("script")).toBeNull();
  expect([...place.querySelectorAll(".p-parents button")].map((one) => one.textContent)).toEqual(["epoch", "step"]);
  const histogram = await until(() => place.querySelector("svg"));
  expect(histogram.getAttribute("aria-label")).toContain("10 ns to 15 ns: 3");
  expect(details()).toEqual(ALL);
});

test("links and parents select and jump", async () => {
  load(fake({ event: async (of) => (of.row === 2 ? ALL : { ...ALL, event: located(of.row, 0, 1), links: [], parents: [] }) }));
  const place = draw(Details);
  void act(() => chosen(HITS[1]!));
  click(await until(() => place.querySelector(".p-links .p-jump")));
  expect(await until(() => details()?.event.row === 7)).toBeTruthy();
});

test("its time is marked, all like it are searched", async () => {
  load(fake({ event: async () => ALL }));
  const place = draw(Details);
  void act(() => chosen(HITS[1]!));
  const button = (text: string) => [...place.querySelectorAll("button")].find((one) => one.textContent === text)!;
  await until(() => place.querySelector("svg"));
  click(button("Mark its time"));
  expect(ranges()).toEqual([{ begin: 300, end: 310 }]);
  click(button("Find all"));
  await until(() => found()?.total === 4);
});

test("a failure is shown and can be tried again; a late answer to an old question is dropped", async () => {
  let fail = true;
  load(fake({ event: async () => (fail ? Promise.reject(new Error("no such row")) : ALL) }));
  const place = draw(Details);
  void act(() => chosen(HITS[1]!));
  const alert = await until(() => place.querySelector('[role="alert"]'));
  expect(alert.textContent).toContain("no such row");
  fail = false;
  click(alert.querySelector("button")!);
  await until(() => place.textContent!.includes("void gemm<float>()"));
  void act(() => chosen(null));
  await until(() => place.textContent!.includes("Nothing is selected."));
  expect(details()).toBeNull();
});
