/** Hostile names are text that people can see, and nothing else. */
import { describe, expect, it } from "vitest";
import { cut, visible, visibleLines } from "./text";

describe("visible", () => {
  it("leaves honest names alone", () => {
    for (const name of ["gemm<float, 4>(int)", "Füße 🦶🏽", "שלום", "👩‍💻", "a\u00a0b"]) expect(visible(name)).toBe(name);
  });
  it("shows control characters and those that turn the writing", () => {
    expect(visible("a\u0000b\n\tc\u001b[2J\u007f")).toBe("a\\0b\\n\\tc\\x1b[2J\\x7f");
    expect(visible("user\u202egnp.exe\u2066\u200f")).toBe("user[RLO]gnp.exe[LRI][RLM]");
    expect(visible("\u0085\ufeff\ud800x\udc00")).toBe("\\x85[BOM]\ufffdx\ufffd");
  });
  it("cuts endless ones and says how long they are", () => {
    const shown = visible("x".repeat(100_000), 50);
    expect(shown).toBe(`${"x".repeat(50)}… (100,000 characters)`);
    expect(cut("ab🦶", 3)).toBe("ab");
    expect(cut("ab🦶", 4)).toBe("ab🦶");
  });
  it("keeps the lines of texts that have some", () => {
    expect(visibleLines("a\r\nb\tc\n")).toBe("a\nb\tc\n");
  });
});
