/** Opening, pinning, hiding and moving rows. */
import { beforeEach, describe, expect, it } from "vitest";
import { hidden, order, pinned, toggled, trees } from "../../app/state";
import { layout } from "../local";
import { node, track } from "../testing";
import { hide, moved, nudge, place, toggleLanes, toggleOpen, togglePin } from "./reorder";

const row = (id: string) => layout.value.main.rows.find((one) => one.id === id)!;
const ids = () => layout.value.main.rows.map((one) => one.id);

beforeEach(() => {
  trees.value = [[node("p", { open: true, children: ["a", "b", "c"].map((id, at) => node(id, { track: track(at, { lanes: 11 }) })) }), node("q", { children: [node("d")] })]];
  toggled.value = new Set();
  pinned.value = [];
  hidden.value = new Set();
  order.value = {};
});

describe("rows", () => {
  it("open and close", () => {
    toggleOpen(row("p"));
    toggleOpen(row("q"));
    expect(ids()).toEqual(["p", "q", "d"]);
    toggleOpen(row("p"));
    expect(ids()).toEqual(["p", "a", "b", "c", "q", "d"]);
  });
  it("show all lanes and few again", () => {
    expect(row("a").more).toBe(3);
    toggleLanes(row("a"));
    expect(row("a").more).toBe(0);
    toggleLanes(row("a"));
    expect(row("a").more).toBe(3);
  });
  it("pin and unpin", () => {
    togglePin(row("b"));
    togglePin(row("a"));
    expect(layout.value.pinned.rows.map((one) => one.id)).toEqual(["b", "a"]);
    const [first, second] = layout.value.pinned.rows;
    expect(nudge(second!, -1)).toBe(true);
    expect(layout.value.pinned.rows.map((one) => one.id)).toEqual(["a", "b"]);
    togglePin(first!);
    expect(pinned.value).toEqual(["a"]);
  });
  it("hide", () => {
    hide(row("b"));
    expect(ids()).toEqual(["p", "a", "c", "q"]);
  });
  it("move among their sisters only", () => {
    expect(place(row("c"), row("a"), false)).toBe(true);
    expect(ids()).toEqual(["p", "c", "a", "b", "q"]);
    expect(place(row("a"), row("q"), false)).toBe(false);
    expect(nudge(row("q"), -1)).toBe(true);
    expect(ids()).toEqual(["q", "p", "c", "a", "b"]);
    expect(nudge(row("q"), -1)).toBe(false);
  });
});

it("puts one of a list before or after another", () => {
  expect(moved(["a", "b", "c"], "a", "c", true)).toEqual(["b", "c", "a"]);
  expect(moved(["a", "b", "c"], "c", "a", false)).toEqual(["c", "a", "b"]);
});
