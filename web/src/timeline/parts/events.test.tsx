/** The events of a track as screen readers and keys find them. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it } from "vitest";
import { offsets, selected, trees, view } from "../../app/state";
import { Store } from "../data/tiles";
import { arrivals, focusedEvent, focusedRow } from "../local";
import type { Stage } from "../stage";
import { node, rects, track } from "../testing";
import { Events } from "./events";

const ANSWER = rects([
  { track: 1, start: 100, duration: 50, name: "forward" }, { track: 1, start: 200, duration: 80, name: "<b>backward</b>" },
  { track: 1, start: 400, duration: 500, name: "rest", slices: 12 },
]);
let store: Store;
let place: HTMLElement;

beforeEach(async () => {
  store = new Store();
  trees.value = [[node("p", { process: 3, track: track(1) })]];
  [view.value, offsets.value, selected.value, focusedEvent.value] = [{ begin: 0, end: 1000 }, [0], null, null];
  focusedRow.value = "p";
  place = document.createElement("div");
  document.body.append(place);
  await act(() => render(<Events stage={{ store } as unknown as Stage} />, place));
});
afterEach(() => {
  render(null, place);
  place.remove();
});

const options = () => [...place.querySelectorAll("[role=option]")].map((one) => one.textContent);
const press = (key: string) => act(() => void document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));

async function arrive(): Promise<void> {
  store.addRects(ANSWER, 0, [1], 1, 1, true);
  arrivals.value += 1;
  await expect.poll(() => options().length, { timeout: 60_000 }).toBe(3);
}

it("lists events that arrive after the request, as text", async () => {
  expect(options()).toEqual([]);
  await arrive();
  expect(options()).toEqual(["forward, 50 ns from 100 ns", "<b>backward</b>, 80 ns from 200 ns", "12 events, longest rest, 500 ns from 400 ns"]);
  expect(place.querySelector("b")).toBeNull();
});

it("never has the events of the row that one has left", async () => {
  await arrive();
  store.addRects(rects([{ track: 2, start: 10, duration: 5, name: "other" }]), 0, [2], 1, 1, true);
  trees.value = [[node("p", { process: 3, track: track(1) }), node("q", { process: 3, track: track(2) })]];
  await act(() => void (focusedRow.value = "q"));
  // At once: nobody rests between going to a row and into its events.
  expect(options()).toEqual(["other, 5 ns from 10 ns"]);
  await act(() => void (focusedRow.value = "nowhere"));
  expect(options()).toEqual([]);
});

it("is walked with arrow keys, and stays where one is when more comes", async () => {
  await arrive();
  const list = place.querySelector<HTMLElement>("[role=listbox]")!;
  await act(() => list.focus());
  expect(focusedEvent.value?.name).toBe("forward");
  await press("ArrowRight");
  expect(focusedEvent.value?.name).toBe("<b>backward</b>");
  store.addRects(rects([{ track: 1, start: 1, duration: 2, name: "first" }, ...[100, 200].map((start) => ({ track: 1, start, duration: 50, name: "x" }))]), 0, [1], 1, 1, true);
  arrivals.value += 1;
  await expect.poll(() => options()[0], { timeout: 60_000 }).toContain("first");
  expect(list.getAttribute("aria-activedescendant")).toBe("tl-event-1");
  await press("Enter");
  expect(selected.value).toMatchObject({ table: "nvtx_ranges", process: 3, track: 1 });
});
