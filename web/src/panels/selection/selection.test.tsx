/** The marked range: sums by name, tracks, two ranges compared. */
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { ranges } from "../../app/state";
import { click, draw, fake, load, until } from "../testing/fake";
import { SelectionPanel } from "./selection";

const grid = (place: Element) => place.querySelector('[role="grid"]')?.getAttribute("aria-label");

test("says how to mark one", () => {
  load(fake());
  expect(draw(SelectionPanel).textContent).toContain("No range is marked.");
});

test("sums of the range, then of another", async () => {
  load(fake());
  ranges.value = [{ begin: 100, end: 300 }];
  const place = draw(SelectionPanel);
  await until(() => grid(place) === "By name" && place.textContent!.includes("50 ns"));
  expect(place.textContent).toContain("2 events on 1 track");
  void act(() => void (ranges.value = [{ begin: 100, end: 500 }]));
  await until(() => place.textContent!.includes("100 ns") && place.textContent!.includes("400 ns"));
  click([...place.querySelectorAll('[role="tab"]')].find((one) => one.textContent === "Tracks")!);
  await until(() => grid(place) === "Tracks" && place.textContent!.includes("GPU 0 › Stream 7"));
});

test("two ranges side by side", async () => {
  load(fake());
  ranges.value = [{ begin: 100, end: 300 }, { begin: 400, end: 800 }];
  const place = draw(SelectionPanel);
  await until(() => grid(place) === "A and B by name");
  const cells = [...place.querySelectorAll('tbody [role="row"] td')].map((one) => one.textContent);
  expect(cells.slice(0, 5)).toEqual(["kernel", "50 ns", "100 ns", "50 ns", "100"]);
});
