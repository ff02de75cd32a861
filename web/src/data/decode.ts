/** Reads binary answers as columns: views of the received bytes, without copies. Little-endian. */
import type { Plot, Rects } from "./types";

const RECTS = 0x31564c57; // "WLV1"
const PLOTS = 0x31504c57; // "WLP1"
const VERSION = 1;
const RECTS_HEADER = 48;
const PLOTS_HEADER = 32;
const RUN = 16;
const NO_COLOR = 0xffffffff;
const text = new TextDecoder("utf-8", { ignoreBOM: true });

/** The rectangles of a viewport; throws where the bytes are not such an answer or not all of it. */
export function decodeRects(bytes: ArrayBuffer, report: number): Rects {
  const [lanes, rects, names, letters] = header(bytes, RECTS, RECTS_HEADER, 4);
  const need = RECTS_HEADER + RUN * lanes! + 36 * rects! + 4 * names! + 4 * (names! + 1) + letters!;
  whole(bytes, need);
  const times = new DataView(bytes);
  let at = RECTS_HEADER;
  const runs = new Uint32Array(bytes, at, lanes! * 4);
  at += RUN * lanes!;
  const long = (): Float64Array => new Float64Array(bytes, (at += 8 * rects!) - 8 * rects!, rects);
  const words = (count: number): Uint32Array => new Uint32Array(bytes, (at += 4 * count) - 4 * count, count);
  const start = long();
  const duration = long();
  const name = words(rects!);
  const row = words(rects!);
  const slices = words(rects!);
  const busy = new Float32Array(bytes, at, rects);
  at += 4 * rects!;
  const link = words(rects!);
  const colors = words(names!);
  const offsets = words(names! + 1);
  const texts = cut(new Uint8Array(bytes, at, letters), offsets);
  return {
    report,
    begin: times.getFloat64(24, true),
    end: times.getFloat64(32, true),
    grain: times.getFloat64(40, true),
    lanes: Array.from({ length: lanes! }, (_, i) => ({
      track: runs[4 * i]!, lane: runs[4 * i + 1]!, first: runs[4 * i + 2]!, count: runs[4 * i + 3]!,
    })),
    start, duration, name, row, slices, busy, link,
    names: texts.map((one, i) => ({ text: one, color: colors[i] === NO_COLOR ? null : colors[i]! })),
  };
}

/** The counters of a viewport, each a view on the columns that all share. */
export function decodePlots(bytes: ArrayBuffer): Plot[] {
  const [series, points] = header(bytes, PLOTS, PLOTS_HEADER, 2);
  whole(bytes, PLOTS_HEADER + RUN * series! + 32 * points!);
  const times = new DataView(bytes);
  const begin = times.getFloat64(16, true);
  const end = times.getFloat64(24, true);
  const runs = new Uint32Array(bytes, PLOTS_HEADER, series! * 4);
  const columns = [0, 1, 2, 3].map((i) => new Float64Array(bytes, PLOTS_HEADER + RUN * series! + 8 * points! * i, points));
  return Array.from({ length: series! }, (_, i) => {
    const [track, first, count] = [runs[4 * i]!, runs[4 * i + 1]!, runs[4 * i + 2]!];
    const [time, low, high, last] = columns.map((column) => column.subarray(first, first + count));
    return { track, begin, end, time: time!, low: low!, high: high!, last: last! };
  });
}

function header(bytes: ArrayBuffer, magic: number, size: number, counts: number): number[] {
  if (bytes.byteLength < size) throw new Error("The server's answer is truncated.");
  const words = new Uint32Array(bytes, 0, 2 + counts);
  if (words[0] !== magic) throw new Error("The server's answer does not match this page. Reload the page.");
  if (words[1] !== VERSION) throw new Error(`The server uses version ${words[1]} of the format, this page version ${VERSION}. Reload the page.`);
  return [...words.subarray(2)];
}

function whole(bytes: ArrayBuffer, need: number): void {
  if (bytes.byteLength < need) throw new Error(`The server's answer is truncated: ${bytes.byteLength} bytes of ${need}.`);
}

/** The pieces of one text; where it is plain ASCII, as nearly always, it is decoded in one go. */
function cut(letters: Uint8Array, offsets: Uint32Array): string[] {
  const all = text.decode(letters);
  const plain = all.length === letters.length && !all.includes("\ufffd");
  const pieces = Array.from<string>({ length: Math.max(offsets.length - 1, 0) });
  for (let i = 0; i < pieces.length; i += 1) {
    const [from, to] = [offsets[i]!, offsets[i + 1]!];
    pieces[i] = plain ? all.slice(from, to) : text.decode(letters.subarray(from, to));
  }
  return pieces;
}
