/** Tests that a page with embedded data answers like its server, and names what it cannot answer. */
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { Blocks } from "./blocks";
import { Embedded } from "./embedded";
import type { ViewportQuery } from "./types";

interface Slice {
  track: number;
  lane: number;
  start: number;
  duration: number;
  name: string;
  row: number;
}

/** The bytes of a viewport answer, slices in order of track, lane and time. */
function rects(slices: Slice[], grain: number, joined = 1): Uint8Array {
  const names = [...new Set(slices.map((one) => one.name))];
  const texts = names.map((one) => new TextEncoder().encode(one));
  const letters = texts.reduce((sum, one) => sum + one.length, 0);
  const runs = [...new Map(slices.map((one) => [`${one.track}/${one.lane}`, one])).values()];
  const bytes = new DataView(new ArrayBuffer(48 + 16 * runs.length + 36 * slices.length + 8 * names.length + 4 + letters));
  let at = 0;
  const word = (value: number): void => bytes.setUint32((at += 4) - 4, value, true);
  const long = (value: number): void => bytes.setFloat64((at += 8) - 8, value, true);
  for (const value of [0x31564c57, 1, runs.length, slices.length, names.length, letters]) word(value);
  for (const value of [0, 1000, grain]) long(value);
  for (const { track, lane } of runs) {
    const own = slices.filter((one) => one.track === track && one.lane === lane);
    for (const value of [track, lane, slices.indexOf(own[0]!), own.length]) word(value);
  }
  for (const one of slices) long(one.start);
  for (const one of slices) long(one.duration);
  for (const one of slices) word(names.indexOf(one.name));
  for (const one of slices) word(one.row);
  for (const _ of slices) word(joined);
  for (const _ of slices) bytes.setFloat32((at += 4) - 4, 1, true);
  for (const _ of slices) word(0xffffffff);
  for (const _ of names) word(0xffffffff);
  let end = 0;
  word(0);
  for (const one of texts) word((end += one.length));
  for (const one of texts) for (const letter of one) bytes.setUint8(at++, letter);
  return new Uint8Array(bytes.buffer);
}

const text = (bytes: Uint8Array): string => gzipSync(bytes).toString("base64");
const json = (value: unknown): string => text(new TextEncoder().encode(JSON.stringify(value)));

const SLICES: Slice[] = [
  { track: 3, lane: 0, start: 0, duration: 40, name: "step", row: 0 },
  { track: 3, lane: 0, start: 50, duration: 40, name: "step", row: 1 },
  { track: 3, lane: 1, start: 10, duration: 20, name: "Load <b>", row: 2 },
  { track: 5, lane: 0, start: 60, duration: 10, name: "gemm", row: 0 },
];

function source(more: Record<string, string> = {}): Embedded {
  const tree = [
    {
      id: "p", kind: "process", name: "python", process: 7, children: [
        { id: "p/nvtx", kind: "nvtx", name: "NVTX", children: [], track: { report: 0, track: 3, layer: "nvtx_ranges" } },
        { id: "p/k", kind: "kernels", name: "Kernels", children: [], track: { report: 0, track: 5, layer: "kernels" } },
      ],
    },
  ];
  return new Embedded(
    new Blocks(
      new Map(
        Object.entries({
          meta: json({ version: 1, title: "run", reports: [{ report: 0, name: "run.warplens" }], features: [] }),
          "tracks/0": json(tree),
          "levels/0": json({ rects: [100, 10, 1], plots: [] }),
          "viewport/0/0": text(rects([{ ...SLICES[0]!, duration: 90 }], 100, 4)),
          "viewport/0/1": text(rects([SLICES[0]!, SLICES[1]!], 10, 2)),
          "viewport/0/2": text(rects(SLICES, 1)),
          "events/0": json({ "nvtx_ranges/7/0": { event: { ...SLICES[0] }, title: "step", fields: [], payload: { a: 1 }, stack: [], links: [], parents: [] } }),
          "alike/0": json({ 0: { name: "step", count: 2 } }),
          "stat/0/nvtx_sum": json({ title: "NVTX", columns: [], rows: [] }),
          "stat/0/broken": json({ error: "there are no kernels" }),
          ...more,
        }),
      ),
    ),
  );
}

const query = (more: Partial<ViewportQuery>): ViewportQuery => ({ report: 0, begin: 0, end: 100, width: 100, tracks: [3, 5], limit: 1000, generation: 1, ...more });

test("the coarsest level that is as fine as the pixels answers", async () => {
  const page = source();
  expect((await page.viewport(query({ width: 1 }))).grain).toBe(100);
  expect((await page.viewport(query({ width: 9 }))).grain).toBe(10);
  expect((await page.viewport(query({ width: 100 }))).grain).toBe(1);
  expect((await page.viewport(query({ width: 16_000 }))).grain).toBe(1);
});

test("a coarser level answers where a finer one has too many rectangles", async () => {
  const page = source();
  expect((await page.viewport(query({ limit: 4 }))).start).toHaveLength(4);
  expect((await page.viewport(query({ limit: 3 }))).grain).toBe(10);
  expect((await page.viewport(query({ limit: 0 }))).grain).toBe(100);
});

test("search finds texts in any case and expressions, around a time", async () => {
  const page = source();
  const found = await page.search(0, "load <", false, 0, 10);
  expect(found.total).toBe(1);
  expect(found.events[0]).toMatchObject({ table: "nvtx_ranges", process: 7, row: 2, track: 3, lane: 1, start: 10, name: "Load <b>" });
  expect((await page.search(0, "^(step|gemm)$", true, 0, 10)).names).toEqual([
    { layer: "nvtx_ranges", text: "step", count: 2 },
    { layer: "kernels", text: "gemm", count: 1 },
  ]);
  expect((await page.search(0, "e", false, 55, 1)).events.map((one) => one.start)).toEqual([50, 60]);
  await expect(page.search(0, "(", true, 0, 10)).rejects.toThrow("Invalid regular expression");
});

test("details come from the page, and where it has none, what is drawn does", async () => {
  const page = source();
  expect((await page.event({ report: 0, table: "nvtx_ranges", process: 7, row: 0 })).payload).toEqual({ a: 1 });
  const drawn = await page.event({ report: 0, table: "kernels", process: 7, row: 0 });
  expect(drawn.title).toBe("gemm");
  expect(drawn.fields.at(-1)?.value).toContain("warplens view run.warplens");
  expect(await page.alike({ report: 0, table: "nvtx_ranges", process: 7, row: 1 })).toMatchObject({ count: 2 });
  await expect(page.alike({ report: 0, table: "kernels", process: 7, row: 0 })).rejects.toThrow("statistics of this name");
  await expect(page.event({ report: 0, table: "kernels", process: 7, row: 99 })).rejects.toThrow("warplens view");
});

test("the first event at or after a time", async () => {
  const page = source();
  expect(await page.at(0, "nvtx_ranges", 1)).toMatchObject({ row: 2 });
  expect(await page.at(0, "nvtx_ranges", 50)).toMatchObject({ row: 1 });
  expect(await page.at(0, "nvtx_ranges", 51)).toBeNull();
});

test("what needs the report is refused with what to do, and what failed says why", async () => {
  const page = source();
  await expect(page.sql(0, "SELECT 1")).rejects.toThrow("warplens view run.warplens");
  await expect(page.selected(0, { begin: 0, end: 1 }, [3])).rejects.toThrow("does not contain");
  await expect(page.stat(0, "nvtx_sum", { begin: 0, end: 1 })).rejects.toThrow("part of the time");
  await expect(page.stat(0, "broken")).rejects.toThrow("there are no kernels");
  await expect(page.stat(0, "unknown")).rejects.toThrow("does not contain");
  expect((await page.stat(0, "nvtx_sum")).title).toBe("NVTX");
  expect(await page.difference()).toBeNull();
});

test("broken data says so", async () => {
  await expect(source({ "viewport/0/2": text(new Uint8Array(9)) }).viewport(query({}))).rejects.toThrow("truncated");
});
