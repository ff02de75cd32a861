/** The legend names the kinds that the tracks can have, and no others. */
import { expect, it } from "vitest";
import type { Track, TrackKind, TrackNode } from "../data/types";
import { kinds } from "./legend";

function node(layer: string, kind: TrackKind = "slices", children: TrackNode[] = []): TrackNode {
  const track: Track = { report: 0, track: 1, kind, layer, lanes: 1, events: 1, busy: 1, begin: 0, end: 1 };
  return { id: layer, kind, name: layer, children, track };
}

it("has what the layers can be", () => {
  expect(kinds([])).toEqual([]);
  expect(kinds([node("kernels", "slices", [node("memcpys"), node("gpu_memory", "counter"), node("thread_states", "states")])])).toEqual(
    ["compute", "communication", "to device", "to host", "on device"],
  );
  expect(kinds([node("cuda_api"), node("nvtx_ranges")])).toEqual(["launch", "wait", "memory", "range"]);
});
