/** Tests data made from answers: related events, longest events, the overview. */
import { describe, expect, it } from "vitest";
import { layOut } from "../layout/rows";
import { node, rects, track } from "../testing";
import { biggest } from "./biggest";
import { correlated, linkOf } from "./correlated";
import { busyOf, sidesOf, usedOf } from "./overview";
import { Store } from "./tiles";

const TREE = [
  node("p", { process: 3, open: true, children: [node("api", { track: track(1, { layer: "cuda_api" }) })] }),
  node("g", { device: 0, open: true, children: [node("s7", { track: track(2, { layer: "kernels" }) }), node("s8", { track: track(3, { layer: "kernels" }) })] }),
];
const ROWS = layOut([TREE], new Set(), []).main.rows;
const ANSWER = rects([
  { track: 1, start: 10, duration: 5, name: "cudaLaunchKernel", link: 7 },
  { track: 1, start: 20, duration: 5, name: "cudaLaunchKernel", link: 8 },
  { track: 2, start: 30, duration: 100, name: "gemm", link: 7 },
  { track: 2, start: 200, duration: 600, name: "many", link: 7, slices: 4, busy: 0.5 },
  { track: 3, start: 0, duration: 500, name: "copy" },
]);
const STORE = new Store();
STORE.addRects(ANSWER, 0, [1, 2, 3], 1, 1, true);
const LAUNCH = { report: 0, table: "cuda_api", process: 3, row: 0, track: 1, lane: 0, start: 10, duration: 5, name: "cudaLaunchKernel" };

describe("correlated", () => {
  it("finds what one launch made, but not what was joined", () => {
    expect(linkOf(STORE, LAUNCH)).toBe(7);
    expect(correlated(STORE, ROWS, LAUNCH).map((one) => [one.track, one.name, one.row])).toEqual([[2, "gemm", 2]]);
  });
  it("finds nothing where there is no link", () => {
    expect(correlated(STORE, ROWS, { ...LAUNCH, track: 3, row: 4, start: 0 })).toEqual([]);
    expect(linkOf(STORE, { ...LAUNCH, track: 99 })).toBeNull();
  });
});

describe("biggest", () => {
  const row = ROWS.find((one) => one.id === "s7")!;
  it("lists the longest in view in order of time", () => {
    expect(biggest(STORE, row, { begin: 0, end: 1000 }).map((one) => [one.event.name, one.slices])).toEqual([["gemm", 1], ["many", 4]]);
    expect(biggest(STORE, row, { begin: 0, end: 1000 }, 1).map((one) => one.event.name)).toEqual(["many"]);
    expect(biggest(STORE, row, { begin: 0, end: 100 }).map((one) => one.event.name)).toEqual(["gemm"]);
  });
  it("names the process and table of an event", () => {
    const api = ROWS.find((one) => one.id === "api")!;
    expect(biggest(STORE, api, { begin: 0, end: 1000 })[0]!.event).toEqual(LAUNCH);
  });
});

describe("overview", () => {
  it("takes GPUs by device and threads one by one", () => {
    const sides = sidesOf(TREE);
    expect([...sides.gpu.entries()].map(([device, tracks]) => [device, tracks.map((one) => one.track)])).toEqual([["0", [2, 3]]]);
    expect([...sides.cpu.values()].flat().map((one) => one.track)).toEqual([1]);
  });
  it("does not count two streams of a device twice", () => {
    const busy = busyOf(ANSWER, sidesOf(TREE).gpu, 10);
    expect(busy[0]).toBeCloseTo(1);
    expect(Math.max(...busy)).toBeLessThanOrEqual(1);
    expect(busy[6]).toBeCloseTo(0.5);
    expect(busy[9]).toBe(0);
  });
  it("takes the CPUs that processes used in place of samples, of which some only wait", () => {
    const samples = node("t", { track: track(4, { layer: "samples", events: 9 }) });
    const used = node("u", { track: track(5, { layer: "cpu_use", kind: "counter", events: 3, high: 2 }) });
    const sides = sidesOf([node("p", { open: true, children: [samples, used] })]);
    expect(sides.cpu.size).toBe(0);
    expect(sides.used.map((one) => one.track)).toEqual([5]);
  });
  it("adds up what processes used, each value until the next", () => {
    const plot = (time: number[], value: number[]) => {
      const column = new Float64Array(value);
      return { track: 5, begin: 0, end: 100, time: new Float64Array(time), low: column, high: column, last: column };
    };
    const used = usedOf([plot([0, 25, 50], [2, 1, NaN]), plot([50], [0.5])], 0, 100, 4);
    expect([...used]).toEqual([2, 1, 0.5, 0.5]);
  });
  it("has nothing for no tracks", () => expect(Math.max(...busyOf(ANSWER, new Map(), 4))).toBe(0));
});
