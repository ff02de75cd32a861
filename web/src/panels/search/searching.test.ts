/** Searching: counts, next and previous, around the ends, over two reports. */
import { expect, test } from "vitest";
import { found, meta, notice, offsets, selected, view } from "../../app/state";
import { HITS, fake, load, located } from "../testing/fake";
import { names, neighbour, search, step } from "./searching";

test("counts and names, nothing moves yet", async () => {
  load(fake());
  await search("kern", false);
  expect(found.value).toMatchObject({ text: "kern", total: 4, current: null });
  expect([...found.value!.names]).toEqual(["kernel"]);
  expect(names.value).toEqual([{ layer: "kernels", text: "kernel", count: 4 }]);
  expect(selected.value).toBeNull();
});

test("next goes through all hits in order of time, also those that begin together, and begins anew", async () => {
  load(fake());
  await search("kern", false);
  const [rows, places]: [number[], (number | null)[]] = [[], []];
  for (let i = 0; i < 5; i++) {
    await step(false);
    rows.push(selected.value!.row);
    places.push(found.value!.place);
  }
  expect(rows).toEqual([1, 2, 3, 4, 1]);
  expect(places).toEqual([1, 2, 3, 4, 1]);
  expect(notice.value).toBe("Continued from the beginning.");
  await step(true);
  expect(selected.value!.row).toBe(4);
  await step(true);
  expect([selected.value!.row, found.value!.place]).toEqual([3, 3]);
});

test("starts with what is seen", async () => {
  load(fake());
  view.value = { begin: 250, end: 400 };
  await search("kern", false);
  await step(false);
  expect(selected.value!.row).toBe(2);
});

test("two reports on one axis", async () => {
  const second = [located(9, 10, 5, "kernel", { report: 1 })];
  const first = fake();
  load(fake({ search: async (report, ...rest) => (report === 0 ? first.search(0, ...rest) : { total: 1, before: rest[2] > 10 ? 1 : 0, names: [{ layer: "kernels", text: "kernel", count: 1 }], events: second }) }), 2);
  offsets.value = [0, 500];
  await search("kern", false);
  expect(found.value!.total).toBe(5);
  const [rows, places]: [number[], (number | null)[]] = [[], []];
  for (let i = 0; i < 5; i++) {
    await step(false);
    rows.push(selected.value!.row);
    places.push(found.value!.place);
  }
  expect(rows).toEqual([1, 2, 3, 9, 4]);
  expect(places).toEqual([1, 2, 3, 4, 5]);
});

test("nothing found, no pattern, a failure: said in words", async () => {
  load(fake());
  await search("absent", false);
  expect(notice.value).toBe("Nothing is called “absent”.");
  await step(false);
  expect(selected.value).toBeNull();
  await search("(", true);
  expect(notice.value).toBe("“(” is no regular expression.");
  load(fake({ search: () => Promise.reject(new Error("too slow")) }));
  await search("kern", false);
  expect(notice.value).toBe("The search failed: too slow");
  await search("", false);
  expect(found.value).toBeNull();
});

test("the newest search counts, whatever comes later", async () => {
  let answer: (() => void) | undefined;
  const quick = fake();
  load(fake({
    search: (report, text, ...rest) => text === "slow" ? new Promise((done) => (answer = () => done({ total: 99, before: 0, names: [], events: [] }))) : quick.search(report, text, ...rest),
  }));
  const slow = search("slow", false);
  await search("kern", false);
  answer!();
  await slow;
  expect(found.value).toMatchObject({ text: "kern", total: 4 });
});

test("neighbours of a place", () => {
  meta.value = null;
  expect(neighbour(HITS, null, 300, false)?.row).toBe(2);
  expect(neighbour(HITS, null, 300, true)?.row).toBe(3);
  expect(neighbour(HITS, HITS[3]!, 0, false)).toBeNull();
  expect(neighbour([], null, 0, false)).toBeNull();
});
