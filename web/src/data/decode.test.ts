/** Tests reading binary answers, written here by hand as docs/dev/formats/viewer.md describes them. */
import { describe, expect, it } from "vitest";
import { decodePlots, decodeRects } from "./decode";

interface Written {
  names?: string[];
  magic?: number;
  version?: number;
}

/** Two lanes of one and two rectangles. */
function rects({ names = ["gemm", "Füße 🦶", "a\u0000b"], magic = 0x31564c57, version = 1 }: Written = {}): ArrayBuffer {
  const texts = names.map((one) => new TextEncoder().encode(one));
  const letters = texts.reduce((sum, one) => sum + one.length, 0);
  const bytes = new ArrayBuffer(48 + 16 * 2 + 36 * 3 + 4 * names.length + 4 * (names.length + 1) + letters);
  const out = new DataView(bytes);
  let at = 0;
  const word = (...values: number[]) => values.forEach((value) => out.setUint32((at += 4) - 4, value, true));
  const long = (...values: number[]) => values.forEach((value) => out.setFloat64((at += 8) - 8, value, true));
  word(magic, version, 2, 3, names.length, letters);
  long(1000, 5000, 2.5);
  word(7, 0, 0, 1, 7, 1, 1, 2);
  long(1100, 1200.5, 4000);
  long(900, 10, 0);
  word(0, 1, 2);
  word(11, 12, 0xffffffff);
  word(1, 40, 1);
  [1, 0.25, 1].forEach((value) => out.setFloat32((at += 4) - 4, value, true));
  word(0xffffffff, 5, 6);
  word(...names.map((_, i) => (i === 1 ? 0xff8800 : 0xffffffff)));
  let end = 0;
  word(0, ...texts.map((one) => (end += one.length)));
  for (const one of texts) {
    new Uint8Array(bytes, at).set(one);
    at += one.length;
  }
  expect(at).toBe(bytes.byteLength);
  return bytes;
}

describe("decodeRects", () => {
  it("gives every column and every name", () => {
    const read = decodeRects(rects(), 1);
    expect(read).toMatchObject({ report: 1, begin: 1000, end: 5000, grain: 2.5 });
    expect(read.lanes).toEqual([{ track: 7, lane: 0, first: 0, count: 1 }, { track: 7, lane: 1, first: 1, count: 2 }]);
    expect([...read.start]).toEqual([1100, 1200.5, 4000]);
    expect([...read.duration]).toEqual([900, 10, 0]);
    expect([...read.name]).toEqual([0, 1, 2]);
    expect([...read.row]).toEqual([11, 12, 0xffffffff]);
    expect([...read.slices]).toEqual([1, 40, 1]);
    expect([...read.busy]).toEqual([1, 0.25, 1]);
    expect([...read.link]).toEqual([0xffffffff, 5, 6]);
    expect(read.names).toEqual([{ text: "gemm", color: null }, { text: "Füße 🦶", color: 0xff8800 }, { text: "a\u0000b", color: null }]);
  });
  it("reads plain names, and none, the same", () => {
    expect(decodeRects(rects({ names: ["a", "", "bc"] }), 0).names.map((one) => one.text)).toEqual(["a", "", "bc"]);
    expect(decodeRects(rects({ names: [] }), 0).names).toEqual([]);
  });
  it("says what is wrong with other bytes", () => {
    expect(() => decodeRects(rects({ magic: 1 }), 0)).toThrow("does not match this page");
    expect(() => decodeRects(rects({ version: 2 }), 0)).toThrow("version 2");
    expect(() => decodeRects(rects().slice(0, 100), 0)).toThrow("truncated");
    expect(() => decodeRects(new ArrayBuffer(3), 0)).toThrow("truncated");
  });
});

describe("decodePlots", () => {
  it("gives each series its own stretch of the columns", () => {
    const bytes = new ArrayBuffer(32 + 16 * 2 + 32 * 3);
    const out = new DataView(bytes);
    [0x31504c57, 1, 2, 3].forEach((value, i) => out.setUint32(4 * i, value, true));
    [10, 20].forEach((value, i) => out.setFloat64(16 + 8 * i, value, true));
    [4, 0, 1, 0, 9, 1, 2, 0].forEach((value, i) => out.setUint32(32 + 4 * i, value, true));
    Array.from({ length: 12 }, (_, i) => i + 0.5).forEach((value, i) => out.setFloat64(64 + 8 * i, value, true));
    const [one, two] = decodePlots(bytes);
    expect(one).toMatchObject({ track: 4, begin: 10, end: 20 });
    expect([...one!.time, ...one!.low, ...one!.high, ...one!.last]).toEqual([0.5, 3.5, 6.5, 9.5]);
    expect(two!.track).toBe(9);
    expect([[...two!.time], [...two!.low], [...two!.high], [...two!.last]]).toEqual([[1.5, 2.5], [4.5, 5.5], [7.5, 8.5], [10.5, 11.5]]);
  });
});
