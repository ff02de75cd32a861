/** Tests that an answer embedded in the page is used once, and that a page without it sends a request. */
// @vitest-environment happy-dom
import { afterEach, expect, it, vi } from "vitest";
import { firstOf } from "./first";
import { Http } from "./http";
import type { Meta, TrackNode } from "./types";

afterEach(() => {
  vi.unstubAllGlobals();
  document.body.innerHTML = "";
});

const META = { version: 1, title: "</script>", features: [], reports: [] } as unknown as Meta;
const TREE: TrackNode[] = [{ id: "host:0", kind: "host", name: "a<b", children: [] }];

it("is what the block says, and leaves the document", () => {
  expect(firstOf(document)).toBeNull();
  const block = document.createElement("script");
  block.type = "application/json";
  block.id = "first";
  block.textContent = JSON.stringify({ meta: META, tracks: [TREE] }).replaceAll("<", "\\u003c");
  document.body.append(block);
  expect(firstOf(document)).toEqual({ meta: META, tracks: [TREE] });
  expect(firstOf(document)).toBeNull();
});

it("answers the first questions alone: a report that has grown is asked for", async () => {
  const asked = vi.fn(async (url: URL) => new Response(JSON.stringify(String(url).includes("meta") ? { ...META, title: "now" } : [])));
  vi.stubGlobal("fetch", asked);
  const http = new Http({ meta: META, tracks: [TREE] }, "http://127.0.0.1:1/api/1/");
  expect(await http.meta()).toEqual(META);
  expect(await http.tracks(0)).toEqual(TREE);
  expect(asked).not.toHaveBeenCalled();
  expect((await http.meta()).title).toBe("now");
  expect(await http.tracks(0)).toEqual([]);
  expect(asked).toHaveBeenCalledTimes(2);
});
