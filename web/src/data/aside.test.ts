/** Tests requests to the fetching thread: answers, cancelled requests, a missing thread. */
import { afterEach, expect, it, vi } from "vitest";
import { Aside } from "./aside";
import type { Answer, Asked } from "./aside.worker";

type Question = Extract<Asked, { question: string }>;

class Thread extends EventTarget {
  readonly asked: Asked[] = [];
  ended = false;

  postMessage(asked: Asked): void {
    this.asked.push(asked);
  }

  terminate(): void {
    this.ended = true;
  }

  say(data: Answer | null): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }
}

afterEach(() => vi.unstubAllGlobals());

const BASE = new URL("http://127.0.0.1:1/api/1/");
const QUESTION = "viewport?report=0";

function started(): { aside: Aside; thread: Thread } {
  const [aside, thread] = [new Aside(), new Thread()];
  vi.stubGlobal("Worker", Thread);
  aside.start(BASE, () => thread as unknown as Worker);
  return { aside, thread };
}

it("is asked only when it runs, and gives each question its own answer", async () => {
  const { aside, thread } = started();
  expect(aside.ask(QUESTION)).toBeNull();
  thread.say(null);
  const [first, second] = [aside.ask(QUESTION)!, aside.ask(QUESTION)!];
  const [base, a, b] = thread.asked as [Asked, Question, Question];
  expect(base).toEqual({ base: BASE.href });
  expect(a).toEqual({ id: a.id, question: QUESTION });
  thread.say({ id: b.id, status: 200, body: new ArrayBuffer(2) });
  thread.say({ id: a.id, status: 409, body: new ArrayBuffer(1) });
  expect([(await first).status, (await second).body.byteLength]).toEqual([409, 2]);
});

it("tells the thread when nobody waits any more, and takes no answer then", async () => {
  const { aside, thread } = started();
  thread.say(null);
  const control = new AbortController();
  const answer = aside.ask(QUESTION, control.signal)!;
  control.abort();
  await expect(answer).rejects.toMatchObject({ name: "AbortError" });
  const [, asked] = thread.asked as [Asked, Question];
  expect(thread.asked.at(-1)).toEqual({ id: asked.id, question: null });
  thread.say({ id: asked.id, status: 200, body: new ArrayBuffer(0) });
  await expect(aside.ask(QUESTION, control.signal)).rejects.toMatchObject({ name: "AbortError" });
  expect(thread.asked.length).toBe(3);
});

it("leaves the page to itself when the thread breaks", async () => {
  const { aside, thread } = started();
  thread.say(null);
  const answer = aside.ask(QUESTION)!;
  thread.dispatchEvent(new Event("error"));
  expect((await answer).status).toBe(0);
  expect(thread.ended).toBe(true);
  expect(aside.ask(QUESTION)).toBeNull();
});
