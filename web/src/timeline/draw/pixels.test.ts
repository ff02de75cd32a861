/** Tests the pixels of rectangles one by one. */
import { beforeEach, describe, expect, it, vi } from "vitest";
import { pixel } from "../../base/rgb";
import { Boxes, DrawList } from "./pack";
import { Pixels } from "./pixels";

const GROUND = 0x102030;
const RED = 0xff0000;
/** Every shade is a different colour. */
const PALETTE = { pixel: (shade: number) => pixel(shade) };

/** jsdom has none. */
class Image {
  readonly data: Uint8ClampedArray;
  constructor(readonly width: number, readonly height: number) {
    this.data = new Uint8ClampedArray(width * height * 4);
  }
}

function painted(width: number, height: number, paint: (pixels: Pixels) => void, top = 0, bottom = height) {
  const pixels = new Pixels();
  pixels.within(width, height, 0, height);
  pixels.fill(GROUND, 0, 0, width, height);
  pixels.within(width, height, top, bottom);
  paint(pixels);
  let rows: string[] = [];
  let dirty: number[] = [];
  const context = {
    putImageData(image: Image, ...where: number[]) {
      dirty = where;
      const names = new Map([[GROUND, "."], [RED, "r"]].map(([color, name]) => [pixel(color as number), name as string]));
      const words = new Uint32Array(image.data.buffer);
      rows = Array.from({ length: height }, (_, y) => Array.from(words.subarray(y * width, (y + 1) * width), (word) => names.get(word) ?? String(word & 0xff)).join(""));
    },
  };
  pixels.show(context as unknown as CanvasRenderingContext2D);
  return { rows, dirty };
}

describe("Pixels", () => {
  beforeEach(() => {
    vi.stubGlobal("ImageData", Image);
    return () => vi.unstubAllGlobals();
  });

  it("has the bytes of a colour in the order of an image", () => {
    expect([...new Uint8Array(Uint32Array.of(pixel(0x123456)).buffer)]).toEqual([0x12, 0x34, 0x56, 0xff]);
  });
  it("cuts off what lies outside", () => {
    const { rows, dirty } = painted(6, 5, (pixels) => {
      pixels.fill(RED, -3, -3, 5, 5);
      pixels.fill(RED, 5, 2, 90, 90);
      pixels.fill(RED, 3, 0, 0, 5);
      pixels.fill(RED, 9, 9, 5, 5);
    }, 1, 4);
    expect(rows).toEqual(["......", "rr....", ".....r", ".....r", "......"]);
    expect(dirty).toEqual([0, 0, 0, 1, 6, 3]);
  });
  it("fills wide ones like narrow ones", () => {
    const { rows } = painted(60, 4, (pixels) => pixels.fill(RED, 5, 1, 50, 2));
    expect(rows).toEqual([".".repeat(60), ...Array<string>(2).fill(`.....${"r".repeat(50)}.....`), ".".repeat(60)]);
  });
  it("paints the rectangles of lanes, and leaves what is between them", () => {
    const list = new DrawList();
    list.add(RED, 1, 1, 2, 3);
    list.add(RED, 4, 1, 1, 3);
    list.add(RED, 0, 5, 30, 9);
    const { rows } = painted(30, 7, (pixels) => {
      pixels.fill(0, 3, 0, 1, 7); // a line of the grid, seen through the gap
      pixels.paint(list, PALETTE);
    });
    const gap = `...0${".".repeat(26)}`;
    const lane = `.rr0r${".".repeat(25)}`;
    expect(rows).toEqual([gap, lane, lane, lane, gap, "r".repeat(30), "r".repeat(30)]);
  });
  it("paints what is seen of a lane that begins above the window", () => {
    const list = new DrawList();
    list.add(RED, -5, -2, 7, 4);
    list.add(RED, 3, -20, 1, 4);
    expect(painted(4, 3, (pixels) => pixels.paint(list, PALETTE)).rows).toEqual(["rr..", "rr..", "...."]);
  });
  it("paints the columns of plots", () => {
    const boxes = new Boxes();
    boxes.push(1, 1, 1, 2);
    boxes.push(2, 0, 1, 3);
    expect(painted(4, 3, (pixels) => pixels.fillAll(RED, boxes)).rows).toEqual(["..r.", ".rr.", ".rr."]);
  });
  it("is made anew for a canvas of another size", () => {
    const pixels = new Pixels();
    const sizes: number[][] = [];
    const context = { putImageData: (image: Image) => sizes.push([image.width, image.height]) } as unknown as CanvasRenderingContext2D;
    for (const [width, height] of [[4, 3], [8, 3], [0, 0]] as const) {
      pixels.within(width, height, 0, Math.max(height, 1));
      pixels.show(context);
    }
    expect(sizes).toEqual([[4, 3], [8, 3], [1, 1]]);
  });
});
