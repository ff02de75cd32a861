/** From trees to rows. */
import { describe, expect, it } from "vitest";
import { node, track } from "../testing";
import { Places } from "./places";
import { FEW_LANES, firstRow, laneTop, lanesKey, layOut, own, rowsBetween } from "./rows";

const TREE = [
  node("p", {
    open: true, process: 4,
    children: [
      node("nvtx", { track: track(1, { lanes: 20 }) }),
      node("memory", { track: track(2, { kind: "counter", unit: "bytes", low: 0, high: 10 }) }),
      node("states", { track: track(3, { kind: "states" }) }),
      node("gpu", { children: [node("s7", { track: track(4, { layer: "kernels" }) }), node("proj", { track: track(5, { layer: "nvtx_gpu_projection" }) })] }),
    ],
  }),
];
const NOTHING: ReadonlySet<string> = new Set();

describe("layOut", () => {
  const { main } = layOut([TREE], NOTHING, []);
  it("puts rows under each other without gaps", () => {
    expect(main.rows.map((row) => row.id)).toEqual(["p", "nvtx", "memory", "states", "gpu"]);
    main.rows.reduce((y, row) => {
      expect(row.y).toBe(y);
      return y + row.height;
    }, 0);
    expect(main.height).toBe(main.rows.at(-1)!.y + main.rows.at(-1)!.height);
  });
  it("hands the process down and counts depth and place", () => {
    const nvtx = main.rows[1]!;
    expect([nvtx.process, nvtx.depth, nvtx.place, nvtx.sisters, nvtx.parent]).toEqual([4, 1, 1, 4, "p"]);
  });
  it("limits lanes until all are wanted", () => {
    expect([main.rows[1]!.lanes, main.rows[1]!.more]).toEqual([FEW_LANES, 20 - FEW_LANES]);
    const all = layOut([TREE], new Set([lanesKey("nvtx")]), []).main.rows[1]!;
    expect([all.lanes, all.more]).toEqual([20, 0]);
    expect(all.height).toBeGreaterThan(main.rows[1]!.height);
  });
  it("keeps every lane within its row", () => {
    for (const row of main.rows) {
      expect(laneTop(row, 0)).toBeGreaterThanOrEqual(0);
      expect(laneTop(row, row.lanes - 1) + row.laneHeight - 1).toBeLessThanOrEqual(row.height);
    }
  });
  it("sums up in a closed group what ran on the GPU, not what was projected", () => {
    const gpu = main.rows.at(-1)!;
    expect([gpu.open, gpu.tracks.map((one) => one.track)]).toEqual([false, [4]]);
    const open = layOut([TREE], new Set(["gpu"]), []).main.rows;
    expect(open.map((row) => row.id).slice(-3)).toEqual(["gpu", "s7", "proj"]);
    expect(open.find((row) => row.id === "gpu")!.tracks).toEqual([]);
  });
  it("puts pinned nodes into a separate zone as well", () => {
    const { pinned } = layOut([TREE], NOTHING, ["s7", "gone", "states"]);
    expect(pinned.rows.map((row) => [row.id, row.process, row.pinned])).toEqual([["s7", 4, true], ["states", 4, true]]);
    expect(pinned.rows[0]!.y).toBe(0);
  });
  it("tells two reports apart", () => {
    const both = layOut([TREE, own(TREE, 1)], NOTHING, []).main.rows;
    expect(new Set(both.map((row) => row.key)).size).toBe(both.length);
    expect(both.at(-1)!.report).toBe(1);
  });
});

describe("rowsBetween", () => {
  const { rows, height } = layOut([TREE], NOTHING, []).main;
  it("gives what is seen, cut rows too", () => {
    expect(rowsBetween(rows, 0, height)).toEqual(rows);
    expect(rowsBetween(rows, rows[1]!.y + 1, rows[2]!.y + 1)).toEqual([rows[1], rows[2]]);
    expect(rowsBetween(rows, height, height + 100)).toEqual([]);
  });
  it("finds the row at a height", () => expect(rows.map((row) => firstRow(rows, row.y))).toEqual(rows.map((_, index) => index)));
});

describe("Places", () => {
  const places = new Places(layOut([TREE], NOTHING, []));
  it("knows the row of a track, and the group that hides one", () => {
    expect(places.of(0, 1)).toMatchObject({ folded: false, row: { id: "nvtx" } });
    expect(places.of(0, 5)).toMatchObject({ folded: true, row: { id: "gpu" } });
    expect(places.of(0, 99)).toBeNull();
  });
  it("keeps what lies below the limit of lanes at the last one", () => {
    const last = places.at({ report: 0, track: 1, lane: FEW_LANES - 1 });
    expect(places.at({ report: 0, track: 1, lane: 19 })).toEqual(last);
  });
});
