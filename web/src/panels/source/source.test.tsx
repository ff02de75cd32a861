/** The panel of source lines: the hottest file, another one, the line that a frame leads to, and what colours stand for. */
import { expect, test } from "vitest";
import { panel } from "../../app/state";
import { click, draw, fake, load, until } from "../testing/fake";
import { openSource, parsed, place } from "./place";
import { SourcePanel } from "./source";

const row = (at: Element, line: number) => at.querySelector<HTMLElement>(`[data-line="${line}"]`)!;

test("shows the hottest file with shares, gaps and heat", async () => {
  place.value = { file: "", line: null };
  load(fake());
  const shown = draw(SourcePanel);
  await until(() => shown.querySelector("table"));
  expect(row(shown, 2).textContent).toBe("2100.0 %25.0 %json.loads(text)");
  expect(row(shown, 1).style.getPropertyValue("--heat")).toBe("0.00");
  expect(row(shown, 2).style.getPropertyValue("--heat")).toBe("0.70");
  expect([...shown.querySelectorAll("tbody tr")].map((one) => one.textContent![0])).toEqual(["1", "2", "5", "⋮", "9"]);
  click([...shown.querySelectorAll('[role="tab"]')].find((one) => one.textContent === "Self")!);
  await until(() => row(shown, 9).style.getPropertyValue("--heat") === "0.70");
});

test("asks for the file that a frame leads to, and marks its line", async () => {
  const asked: string[] = [];
  const from = fake();
  load({ ...from, source: (report, file, span) => (asked.push(file), from.source(report, file, span)) });
  openSource(parsed("/app/a b:c.py:9")!);
  expect(panel.value).toBe("source");
  const shown = draw(SourcePanel);
  await until(() => shown.querySelector("table"));
  expect(asked).toEqual(["/app/a b:c.py"]);
  expect(row(shown, 9).className).toBe("p-wanted");
});

test("only files of Python lead there", () => {
  expect(parsed("/lib/libc.so.6")).toBeNull();
  expect(parsed("<frozen importlib._bootstrap>:10")).toBeNull();
  expect(parsed("/app/train.py")).toEqual({ file: "/app/train.py", line: null });
});
