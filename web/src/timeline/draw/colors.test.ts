/** Colours: readable, honoured, steady. */
import { describe, expect, it } from "vitest";
import { rects } from "../testing";
import { Lights } from "./lights";
import { FULL, LEVELS, Palette } from "./palette";
import { contrast, css, luminance, mix, rgb, seenOn } from "../../base/rgb";
import { DARK, LIGHT } from "../../base/canvas";

const NONE = 0xffffffff;

describe.each([["dark", DARK], ["light", LIGHT]])("%s", (_, theme) => {
  const palette = new Palette(theme);
  it("has text that is read on every fill", () => {
    for (const color of [...theme.fills, ...Object.values(theme.kinds), ...Object.values(theme.states)]) {
      const shade = palette.number(color) * LEVELS + FULL;
      const ink = palette.ink(shade) === 0 ? 0x0d1117 : 0xffffff;
      expect(contrast(palette.solid(shade), ink)).toBeGreaterThanOrEqual(4.5);
    }
  });
  it("sees every fill on its ground", () => {
    for (const color of [...theme.fills, ...Object.values(theme.kinds)]) expect(contrast(color, theme.ground)).toBeGreaterThan(1.25);
  });
  it("honours a colour that a program gave, and moves one that nobody would see", () => {
    const green = rgb("#76b900");
    expect(palette.solid(palette.of("name", "nvtx_ranges", "x", green, NONE) * LEVELS + FULL)).toBe(green);
    const hardly = palette.solid(palette.of("name", "nvtx_ranges", "x", theme.ground, NONE) * LEVELS + FULL);
    expect(contrast(hardly, theme.ground)).toBeGreaterThanOrEqual(1.6);
  });
  it("goes by the name where nvtx.annotate was given no colour", () => {
    expect(palette.of("name", "nvtx_ranges", "forward", 0x0000ff, NONE)).toBe(palette.of("name", "nvtx_ranges", "forward", null, NONE));
  });
  it("goes by what a thread did in every colouring", () => {
    const blocked = palette.of("category", "thread_states", "blocked", null, NONE);
    expect(palette.of("name", "thread_states", "blocked", null, NONE)).toBe(blocked);
    expect(palette.of("name", "thread_states", "running", null, NONE)).not.toBe(blocked);
  });
});

describe("Palette", () => {
  it("gives a name one colour", () => {
    const palette = new Palette(DARK);
    expect(palette.of("name", "kernels", "gemm", null, NONE)).toBe(palette.of("name", "kernels", "gemm", null, NONE));
  });
  it("gives numbered names of ranges one colour, and kernels of other sizes their own", () => {
    const palette = new Palette(DARK);
    const of = (layer: string, name: string): number => palette.of("name", layer, name, null, NONE);
    expect(of("nvtx_ranges", "step 12")).toBe(of("nvtx_ranges", "step 7"));
    expect(new Set([64, 128, 256, 512].map((size) => of("kernels", `gemm_${size}`))).size).toBeGreaterThan(1);
  });
  it("tells kinds of work apart", () => {
    const palette = new Palette(DARK);
    const kinds = [["kernels", "gemm"], ["kernels", "ncclDevKernel_AllReduce"], ["memcpys", "HtoD"], ["memcpys", "DtoH"], ["cuda_api", "cudaStreamSynchronize"]] as const;
    expect(new Set(kinds.map(([layer, name]) => palette.of("category", layer, name, null, NONE))).size).toBe(kinds.length);
  });
  it("stays small however many colours a program uses", () => {
    const palette = new Palette(DARK);
    for (let color = 0; color < 100_000; color += 1) palette.number((color * 7919) & 0xffffff);
    expect(palette.size).toBeLessThanOrEqual(1024 + 4096);
  });
});

describe("rgb", () => {
  it("writes and mixes", () => {
    expect(css(rgb("#0a0b0c"))).toBe("#0a0b0c");
    expect(mix(0xffffff, 0, 0.5)).toBe(0x808080);
    expect([luminance(0), luminance(0xffffff)]).toEqual([0, 1]);
    expect(contrast(0, 0xffffff)).toBeCloseTo(21);
  });
  it("leaves a colour that is seen", () => expect(seenOn(0xff0000, 0, 0xffffff)).toBe(0xff0000));
});

describe("Lights", () => {
  const answer = rects([{ track: 1, start: 0, duration: 1, name: "gemm" }, { track: 1, start: 1, duration: 1, name: "x".repeat(80) }, { track: 1, start: 2, duration: 1, name: "relu" }]);
  const found = { text: "", regex: false, total: 2, names: new Set(["gemm", "x".repeat(500)]), current: null, place: null };
  it("lights hits, also those whose names were cut", () => {
    expect([...new Lights(new Palette(DARK), "name", found).lit(answer)!]).toEqual([1, 1, 0]);
  });
  it("lights all where nothing is searched or found", () => {
    expect(new Lights(new Palette(DARK), "name", null).lit(answer)).toBeNull();
    expect(new Lights(new Palette(DARK), "name", { ...found, names: new Set() }).lit(answer)).toBeNull();
  });
  it("works colours out once for an answer", () => {
    const lights = new Lights(new Palette(DARK), "name", null);
    expect(lights.colors(answer, "kernels")).toBe(lights.colors(answer, "kernels"));
  });
});
