/** The names of the rows as screen readers and keys find them. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hidden, order, pinned, toggled, trees } from "../../app/state";
import { focusedRow, layout, rested } from "../local";
import { node, track } from "../testing";
import { Headers } from "./headers";

let place: HTMLElement;

beforeEach(async () => {
  trees.value = [[
    node("p", { name: "python", detail: "pid 7", open: true, children: [node("t", { name: "main", track: track(1, { lanes: 20, events: 1234 }) }), node("c", { name: "SM active", track: track(2, { kind: "counter", unit: "%", low: 0, high: 90 }) })] }),
    node("q", { name: "<script>alert(1)</script>\u202e\u0000", children: [node("x")] }),
  ]];
  [pinned.value, hidden.value, toggled.value, order.value, focusedRow.value] = [[], new Set(), new Set(), {}, null];
  rested.value = true;
  place = document.createElement("div");
  document.body.append(place);
  await act(() => render(<Headers pinned={false} from={0} to={Infinity} />, place));
});
afterEach(() => {
  render(null, place);
  place.remove();
});

const items = () => [...place.querySelectorAll<HTMLElement>("[role=treeitem]")];
const press = (key: string, more: KeyboardEventInit = {}) =>
  act(() => void document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more })));

describe("the tree", () => {
  it("says level, place, what is open, and what is in a row", () => {
    expect(items().map((item) => [item.ariaLevel ?? item.getAttribute("aria-level"), item.getAttribute("aria-expanded"), item.getAttribute("aria-label")])).toEqual([
      ["1", "true", "python pid 7"], ["2", null, "main, 1,234 events, busy 0.05 %"], ["2", null, "SM active, counter from 0 % to 90 %"],
      ["1", "false", expect.stringContaining("<script>")],
    ]);
  });
  it("shows hostile names as text, without what turns writing round", () => {
    expect(place.querySelector("script")).toBeNull();
    expect(place.textContent).not.toMatch(/[\u0000\u202e]/);
  });
  it("has only what is near the screen until the page rests, then all that a reader may look for", async () => {
    rested.value = false;
    await act(() => render(<Headers pinned={false} from={0} to={20} />, place));
    expect(items().length).toBe(1);
    await act(() => void (rested.value = true));
    expect(items().length).toBe(4);
  });
  it("is one stop of the Tab key", () => expect(items().filter((item) => item.tabIndex === 0).length).toBe(1));
  it("is walked, opened and closed with arrow keys", async () => {
    await act(() => items()[0]!.focus());
    await press("ArrowDown");
    expect(document.activeElement).toBe(items()[1]);
    await press("ArrowLeft");
    expect(document.activeElement).toBe(items()[0]);
    await press("ArrowLeft");
    expect(items().length).toBe(2);
    await press("End");
    await press("ArrowRight");
    expect(layout.value.main.rows.map((row) => row.id)).toEqual(["p", "q", "x"]);
  });
  it("pins, hides and moves with keys", async () => {
    await act(() => items()[1]!.focus());
    await press("ArrowDown", { altKey: true });
    expect(layout.value.main.rows.map((row) => row.id)).toEqual(["p", "c", "t", "q"]);
    await press("p");
    expect(pinned.value).toEqual(["t"]);
    await press("h");
    expect(layout.value.main.rows.map((row) => row.id)).toEqual(["p", "c", "q"]);
  });
  it("shows all lanes by a button", async () => {
    const button = items()[1]!.querySelector<HTMLButtonElement>("button[aria-label='Show 12 more lanes']")!;
    await act(() => button.click());
    expect(layout.value.main.rows[1]!.lanes).toBe(20);
  });
});
