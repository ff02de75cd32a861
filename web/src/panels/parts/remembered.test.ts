/** Tests what panels keep while they are closed. */
import { expect, test } from "vitest";
import { source } from "../../app/state";
import { fake } from "../testing/fake";
import { remembered } from "./remembered";

test("the same for a key until there is another source", () => {
  source.value = fake();
  const first = remembered("table", () => ({ name: "a" }));
  first.name = "b";
  expect(remembered("table", () => ({ name: "c" }))).toBe(first);
  expect(remembered("other", () => ({ name: "c" }))).toEqual({ name: "c" });
  source.value = fake();
  expect(remembered("table", () => ({ name: "d" }))).toEqual({ name: "d" });
});
