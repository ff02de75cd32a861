/** The frame of the page: what its buttons, tabs and fields do to the state, and what it says. */
import { type ComponentChild, render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ReportMeta } from "../data/types";
import { Bottom } from "./bottom";
import { Help } from "./keys/help";
import { addKeys } from "./keys/keys";
import { colorBy, filter, groupBy, help, meta, notice, panel, ranges, theme, view } from "./state";
import { Status } from "./status";
import { Toolbar } from "./toolbar";

let place: HTMLElement;

const REPORT: ReportMeta = {
  report: 0, name: "run", command: "python train.py", hosts: ["a"], begin: 0, end: 2e9, events: 1234, realtime: null, generation: 1, live: false, diagnostics: 0, warnings: 0,
};

beforeEach(() => {
  place = document.body.appendChild(document.createElement("div"));
  meta.value = { version: 1, title: "run <b>\u202eone", reports: [REPORT], features: [] };
  view.value = { begin: 0, end: 2e9 };
  ranges.value = [];
  panel.value = null;
  filter.value = "";
  notice.value = "";
});
afterEach(async () => {
  await act(() => render(null, place));
  place.remove();
});

async function shown(what: ComponentChild): Promise<void> {
  await act(() => render(what, place));
}

const button = (name: string) => [...place.querySelectorAll<HTMLElement>("button")].find((one) => (one.getAttribute("aria-label") ?? one.textContent).includes(name))!;

function keyOn(target: Element, key: string): Promise<void> {
  return act(() => void target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))) as Promise<void>;
}

it("opens one panel at a time, by mouse and by arrows, and closes it", async () => {
  await shown(<Bottom />);
  expect(place.querySelector("[role=tabpanel]")).toBeNull();
  await act(() => document.getElementById("tab-sql")!.click());
  expect(panel.value).toBe("sql");
  expect(document.getElementById("tab-sql")!.getAttribute("aria-selected")).toBe("true");
  expect(place.querySelectorAll("[role=tabpanel]").length).toBe(1);
  document.getElementById("tab-sql")!.focus();
  await keyOn(document.getElementById("tab-sql")!, "ArrowLeft");
  expect(panel.value).toBe("selection");
  expect(document.activeElement?.id).toBe("tab-selection");
  await act(() => button("Close the panel").click());
  expect(panel.value).toBeNull();
});

it("changes the height of a panel by keys", async () => {
  panel.value = "sql";
  await shown(<Bottom />);
  const grip = place.querySelector("[role=separator]")!;
  const before = Number(grip.getAttribute("aria-valuenow"));
  await keyOn(grip, "ArrowUp");
  expect(Number(grip.getAttribute("aria-valuenow"))).toBe(before + 24);
  expect(place.querySelector<HTMLElement>("[role=tabpanel]")!.style.height).toBe(`${before + 24}px`);
  for (let i = 0; i < 40; i += 1) await keyOn(grip, "ArrowDown");
  expect(Number(grip.getAttribute("aria-valuenow"))).toBe(Number(grip.getAttribute("aria-valuemin")));
});

it("has the title as text, and fields that change what is shown", async () => {
  await shown(<Toolbar />);
  expect(place.querySelector("h1")!.textContent).toBe("run <b>[RLO]one");
  const field = place.querySelector<HTMLInputElement>("#filter")!;
  await act(() => {
    field.value = "/stream (/";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  expect(filter.value).toBe("/stream (/");
  expect(field.getAttribute("aria-invalid")).toBe("true");
  await keyOn(field, "Escape");
  expect(filter.value).toBe("");
  const [group, color] = place.querySelectorAll("select");
  await act(() => {
    group!.value = "rank";
    group!.dispatchEvent(new Event("change", { bubbles: true }));
    color!.value = "category";
    color!.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect([groupBy.value, colorBy.value]).toEqual(["rank", "category"]);
  groupBy.value = "host";
  colorBy.value = "name";
  theme.value = "system";
  await act(() => button("Colours of the page").click());
  expect(theme.value).toBe("dark");
});

it("shows the visible time, the last message and the lost records", async () => {
  await shown(<Status />);
  expect(place.textContent).toContain("0.000 s – 2.000 s (2.00 s)");
  expect(place.textContent).toContain("1,234 events");
  expect(place.querySelector(".lost")).toBeNull();
  await act(() => {
    notice.value = "3 hits \u0000";
    ranges.value = [{ begin: 0, end: 1500 }];
    meta.value = { ...meta.value!, reports: [{ ...REPORT, diagnostics: 2, live: true }] };
  });
  expect(place.querySelector("[aria-live]")!.textContent).toBe("3 hits \\0");
  expect(place.textContent).toContain("2 notes");
  expect(place.querySelector(".lost")).toBeNull(); // of what was only noted nobody is warned
  await act(() => void (meta.value = { ...meta.value!, reports: [{ ...REPORT, diagnostics: 2, warnings: 1, live: true }] }));
  await act(() => button("marked 1.50 us").click());
  expect(panel.value).toBe("selection");
  expect(place.textContent).toContain("live");
  await act(() => place.querySelector<HTMLElement>(".lost")!.click());
  expect(panel.value).toBe("diagnostics");
});

it("makes the help from the table of keys", async () => {
  const away = addKeys([{ keys: ["Shift+y", "ArrowUp"], group: "Move", does: "Something new", run: () => {} }]);
  await shown(<Help />);
  expect(place.textContent).toBe("");
  await act(() => void (help.value = true));
  const row = [...place.querySelectorAll("dl > div")].find((one) => one.textContent.includes("Something new"))!;
  expect([...row.querySelectorAll("kbd")].map((one) => one.textContent)).toEqual(["Shift + Y", "↑"]);
  await act(() => button("Close the help").click());
  expect(help.value).toBe(false);
  away();
});
