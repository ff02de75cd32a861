/** Builds the page into the Python package, and holds it to its size; `vitest` reads the same file. */
import { readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const BUNDLE = join(import.meta.dirname, "..", "src", "warplens", "viewer", "_bundle");
const MOST_KIB = 300;

/** Fails the build where what a browser downloads is more than we promise. */
function budget(folder: string): Plugin {
  return {
    name: "budget",
    apply: "build",
    closeBundle() {
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
      const bytes = files.reduce((sum, one) => sum + gzipSync(readFileSync(join(one.parentPath, one.name)), { level: 9 }).length, 0);
      const kib = bytes / 1024;
      if (kib > MOST_KIB) {
        rmSync(folder, { recursive: true });
        throw new Error(`the page is ${kib.toFixed(0)} KiB gzipped, more than ${MOST_KIB}: leave something out`);
      }
      this.info(`the page is ${kib.toFixed(0)} KiB gzipped, of ${MOST_KIB}`);
    },
  };
}

/** `WARPLENS_VIEW='http://127.0.0.1:PORT/?token=…' npm run dev`: the page as it is edited, with the data of a running `warplens view --no-browser`. */
function proxied(address: string | undefined) {
  if (address === undefined) return {};
  const { origin, searchParams } = new URL(address);
  const headers = { authorization: `Bearer ${searchParams.get("token") ?? ""}`, origin };
  return { proxy: { "/api": { target: origin, changeOrigin: true, headers } } };
}

/** `--mode single`: in one piece, for the pages that `warplens view --export` writes. */
export default defineConfig(({ mode }) => {
  const isSingle = mode === "single";
  const out = join(process.env.WARPLENS_WEB_OUT ?? BUNDLE, isSingle ? "single" : "");
  return {
    base: "./",
    server: proxied(process.env.WARPLENS_VIEW),
    build: {
      outDir: out,
      emptyOutDir: true,
      target: "es2022",
      // The strict Content-Security-Policy knows no inline scripts, styles or data: fonts.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      ...(isSingle ? { rolldownOptions: { output: { codeSplitting: false } } } : {}),
    },
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    plugins: [budget(out)],
    test: {
      pool: "threads",
      testTimeout: 60_000,
      hookTimeout: 60_000,
      restoreMocks: true,
      // Making a document takes longer than most tests: those of .ts files have none, but for those that ask (`@vitest-environment happy-dom`).
      projects: [
        { extends: true, test: { name: "logic", environment: "node", include: ["src/**/*.test.ts"] } },
        { extends: true, test: { name: "page", environment: "happy-dom", include: ["src/**/*.test.tsx"] } },
      ],
    },
  };
});
