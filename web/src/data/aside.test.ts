/** Questions to the thread that fetches: what comes back, what is given up, what happens when there is no thread. */
import { afterEach, expect, it, vi } from "vitest";
import { Aside } from "./aside";
import type { Answer, Asked } from "./aside.worker";

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

const ADDRESS = new URL("http://127.0.0.1:1/api/1/viewport?report=0");

function started(): { aside: Aside; thread: Thread } {
  const [aside, thread] = [new Aside(), new Thread()];
  vi.stubGlobal("Worker", Thread);
  aside.start(() => thread as unknown as Worker);
  return { aside, thread };
}

it("is asked only when it runs, and gives each question its own answer", async () => {
  const { aside, thread } = started();
  expect(aside.ask(ADDRESS)).toBeNull();
  thread.say(null);
  const [first, second] = [aside.ask(ADDRESS)!, aside.ask(ADDRESS)!];
  const [a, b] = thread.asked;
  expect(a).toEqual({ id: a!.id, url: ADDRESS.href });
  thread.say({ id: b!.id, status: 200, body: new ArrayBuffer(2) });
  thread.say({ id: a!.id, status: 409, body: new ArrayBuffer(1) });
  expect([(await first).status, (await second).body.byteLength]).toEqual([409, 2]);
});

it("tells the thread when nobody waits any more, and takes no answer then", async () => {
  const { aside, thread } = started();
  thread.say(null);
  const control = new AbortController();
  const answer = aside.ask(ADDRESS, control.signal)!;
  control.abort();
  await expect(answer).rejects.toMatchObject({ name: "AbortError" });
  expect(thread.asked.at(-1)).toEqual({ id: thread.asked[0]!.id, url: null });
  thread.say({ id: thread.asked[0]!.id, status: 200, body: new ArrayBuffer(0) });
  await expect(aside.ask(ADDRESS, control.signal)).rejects.toMatchObject({ name: "AbortError" });
  expect(thread.asked.length).toBe(2);
});

it("leaves the page to itself when the thread breaks", async () => {
  const { aside, thread } = started();
  thread.say(null);
  const answer = aside.ask(ADDRESS)!;
  thread.dispatchEvent(new Event("error"));
  expect((await answer).status).toBe(0);
  expect(thread.ended).toBe(true);
  expect(aside.ask(ADDRESS)).toBeNull();
});
