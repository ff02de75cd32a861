// @vitest-environment happy-dom
/** The keys of all parts together: none means two things, and the fields that they lead to are there. */
import { expect, it } from "vitest";
import { listenKeys } from "../../timeline/input/keys";
import type { Stage } from "../../timeline/stage";
import { bindings } from "./keys";
import { addPageKeys } from "./shortcuts";
import { panel } from "../state";

it("gives each key one meaning, but Escape", () => {
  const ends = [addPageKeys(), listenKeys({} as Stage)];
  const keys = bindings.value.flatMap((one) => one.keys).filter((key) => key !== "Escape");
  expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
  expect(bindings.value.every((one) => one.does !== "" && one.group !== "")).toBe(true);
  for (const end of ends) end();
  expect(bindings.value).toEqual([]);
});

it("closes the panel and opens the same one again", () => {
  const end = addPageKeys();
  const press = (key: string) => bindings.value.find((one) => one.keys.includes(key))!.run(new KeyboardEvent("keydown", { key }));
  press("2");
  expect(panel.value).toBe("stats");
  press("b");
  expect(panel.value).toBeNull();
  press("b");
  expect(panel.value).toBe("stats");
  press("2");
  expect(panel.value).toBeNull();
  end();
});
