/** Tests arranging the tree of tracks. */
import { describe, expect, it } from "vitest";
import type { TrackNode } from "../../data/types";
import { node, track } from "../testing";
import { type Wishes, pathTo, wished } from "./tree";

const TREE: TrackNode[] = [
  node("host", {
    children: [
      node("p0", { rank: 0, process: 10, name: "python", children: [node("t0", { name: "main", detail: "tid 7", track: track(1) })] }),
      node("p1", { rank: 1, process: 11, name: "worker", children: [node("t1", { name: "loader", track: track(2) })] }),
      node("g0", { device: 0, name: "H100", children: [node("s7", { name: "stream 7", track: track(3) })] }),
    ],
  }),
];
const NONE: Wishes = { filter: "", groupBy: "host", hidden: new Set(), order: {} };

function ids(nodes: readonly TrackNode[]): string[] {
  return nodes.flatMap((one) => [one.id, ...ids(one.children)]);
}

describe("wished", () => {
  it("leaves the tree as it is where nothing is wished", () => expect(ids(wished(TREE, NONE, "root"))).toEqual(ids(TREE)));
  it("keeps what matches, what is below it and what leads there", () => {
    expect(ids(wished(TREE, { ...NONE, filter: "LOADER" }, "root"))).toEqual(["host", "p1", "t1"]);
    expect(ids(wished(TREE, { ...NONE, filter: "python" }, "root"))).toEqual(["host", "p0", "t0"]);
    expect(ids(wished(TREE, { ...NONE, filter: "tid 7" }, "root"))).toEqual(["host", "p0", "t0"]);
  });
  it("takes what stands between slashes as a regular expression, and a broken one as text", () => {
    expect(ids(wished(TREE, { ...NONE, filter: "/^(main|loader)$/" }, "root"))).toEqual(["host", "p0", "t0", "p1", "t1"]);
    expect(ids(wished(TREE, { ...NONE, filter: "/stream (" }, "root"))).toEqual([]);
  });
  it("groups by rank and by device, the rest after them", () => {
    expect(ids(wished(TREE, { ...NONE, groupBy: "rank" }, "root"))).toEqual(["p0", "t0", "p1", "t1", "host", "g0", "s7"]);
    expect(ids(wished(TREE, { ...NONE, groupBy: "device" }, "root"))).toEqual(["g0", "s7", "host", "p0", "t0", "p1", "t1"]);
  });
  it("puts several of one rank below one row", () => {
    const two = [node("h0", { children: [node("a", { rank: 3 }), node("b", { rank: 1 })] }), node("h1", { children: [node("c", { rank: 3 })] })];
    const made = wished(two, { ...NONE, groupBy: "rank" }, "root");
    expect(ids(made)).toEqual(["b", "rank:3", "a", "c"]);
    expect(made[1]!.name).toBe("Rank 3");
  });
  it("hides nodes with all below them", () => expect(ids(wished(TREE, { ...NONE, hidden: new Set(["p0", "s7"]) }, "root"))).toEqual(["host", "p1", "t1", "g0"]));
  it("keeps an order, and puts what it does not name after it", () => {
    expect(ids(wished(TREE, { ...NONE, order: { host: ["g0", "p1"] } }, "root"))).toEqual(["host", "g0", "s7", "p1", "t1", "p0", "t0"]);
  });
});

it("finds the way to a track", () => {
  expect(pathTo(TREE, 2).map((one) => one.id)).toEqual(["host", "p1", "t1"]);
  expect(pathTo(TREE, 9)).toEqual([]);
});
