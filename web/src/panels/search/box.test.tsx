/** The search field: hits, next and previous by keys, names that match. */
import { expect, test } from "vitest";
import { found, selected } from "../../app/state";
import { click, draw, fake, load, press, type, until } from "../testing/fake";
import { SearchBox } from "./box";
import { search } from "./searching";

test("Enter goes to the next hit, Shift+Enter back, Escape gives the keys back and keeps the hits", async () => {
  load(fake());
  const place = draw(SearchBox);
  const field = place.querySelector("input")!;
  type(field, "kern");
  press(field, "Enter");
  await until(() => selected.value?.row === 1);
  expect(place.textContent).toContain("1 of 4");
  press(field, "Enter");
  await until(() => selected.value?.row === 2);
  press(field, "Enter", { shiftKey: true });
  await until(() => selected.value?.row === 1);
  field.focus();
  press(field, "Escape");
  await until(() => document.activeElement !== field);
  expect(found.value?.text).toBe("kern");
  await search("", false); // as Escape on the timeline does
  await until(() => field.value === "");
});

test("Escape while it is typed searches at once", async () => {
  load(fake());
  const place = draw(SearchBox);
  const field = place.querySelector("input")!;
  type(field, "kern");
  press(field, "Escape");
  await until(() => found.value?.total === 4);
  expect(field.value).toBe("kern");
});

test("searches while it is typed", async () => {
  load(fake());
  const place = draw(SearchBox);
  type(place.querySelector("input")!, "kern");
  await until(() => place.textContent!.includes("4 hits"));
  expect(selected.value).toBeNull();
});

test("the names that match, and on with one of them", async () => {
  load(fake());
  const place = draw(SearchBox);
  type(place.querySelector("input")!, "kern");
  const hits = await until(() => place.querySelector<HTMLButtonElement>(".p-hits:not(:disabled)"));
  click(hits);
  const name = await until(() => place.querySelector("#search-names button"));
  expect(name.textContent).toContain("4");
  click(name);
  await until(() => found.value?.text === "kernel" && selected.value?.row === 1);
});
