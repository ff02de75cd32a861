/** Makes names safe to show: invisible characters and changes of direction are written out, long names cut. */
import { count } from "./format";

/** Of a name in a line; details show far more. */
const LINE = 2000;

const NAMED: Record<number, string> = {
  0x061c: "ALM", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO",
  0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
const ESCAPES: Record<string, string> = { "\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r" };
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The text on one line, each control character as programmers write it (\0, \x1b), at most `most` characters and how many there were. */
export function visible(text: string, most = LINE): string {
  return marked(cut(text, most)) + rest(text, most);
}

/** The same for text that has several lines. */
export function visibleLines(text: string, most = 100_000): string {
  const parts = cut(text, most).replaceAll("\r\n", "\n").split(/([\n\t])/);
  return parts.map((part) => (part === "\n" || part === "\t" ? part : marked(part))).join("") + rest(text, most);
}

function marked(text: string): string {
  return text.replace(HIDDEN, (letter) => {
    const code = letter.charCodeAt(0);
    // The signs that Unicode has for them (U+2400) are in few fonts.
    if (code < 0xa0) return ESCAPES[letter] ?? `\\x${code.toString(16).padStart(2, "0")}`;
    if (code >= 0xd800 && code < 0xe000) return "\ufffd";
    return `[${NAMED[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`}]`;
  });
}

/** The beginning of a text; no pair of UTF-16 is parted. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

function rest(text: string, most: number): string {
  return text.length > most ? `… (${count(text.length)} characters)` : "";
}
