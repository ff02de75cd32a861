/** Tests answers: pending, complete, failed, late. */
import { signal } from "@preact/signals";
import { h } from "preact";
import { act } from "preact/test-utils";
import { expect, test } from "vitest";
import { click, draw, until } from "../testing/fake";
import { Answered, useAnswer } from "./answer";

/** A panel that asks for `key` with `ask`. */
function panel(ask: (key: string, signal: AbortSignal) => Promise<string>) {
  const key = signal("a");
  const place = draw(() => {
    const answer = useAnswer((control) => ask(key.value, control), [key.value]);
    return h(Answered<string>, { of: answer, what: "the words", children: (value: string) => `got ${value}` });
  });
  return { key, place };
}

test("loads, then shows", async () => {
  const { place } = panel(async (key) => key);
  expect(place.querySelector('[role="status"]')!.textContent).toBe("Loading the words …");
  expect(await until(() => place.textContent === "got a")).toBe(true);
});

test("what the report does not have is no failure", async () => {
  const { place } = panel(() => Promise.reject(new Error("does not contain CUDA data.")));
  await until(() => place.textContent === "The report does not contain CUDA data.");
  expect(place.querySelector("button")).toBeNull();
});

test("a failure can be tried again", async () => {
  let turn = 0;
  const { place } = panel(async (key) => {
    turn += 1;
    if (turn === 1) throw new Error("it broke");
    return key;
  });
  const alert = await until(() => place.querySelector('[role="alert"]'));
  expect(alert.textContent).toContain("The words could not be loaded: it broke");
  click(alert.querySelector("button")!);
  await until(() => place.textContent === "got a");
});

test("a late answer to an old question is given up and dropped", async () => {
  const given: Record<string, { done: (value: string) => void; control: AbortSignal }> = {};
  const { key, place } = panel((which, control) => new Promise((done) => (given[which] = { done, control })));
  await until(() => given["a"]);
  void act(() => void (key.value = "b"));
  await until(() => given["b"]);
  expect(given["a"]!.control.aborted).toBe(true);
  given["b"]!.done("b");
  await until(() => place.textContent === "got b");
  given["a"]!.done("a");
  await act(async () => {});
  expect(place.textContent).toBe("got b");
});
