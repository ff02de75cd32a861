/** Fetches in a separate thread: while the page draws frame after frame, each part of an answer
 * would wait for a gap between two of them. */
import type { Answer, Asked } from "./aside.worker";

export class Aside {
  #worker: Worker | null = null;
  #isReady = false;
  #last = 0;
  readonly #waiting = new Map<number, (answer: Answer) => void>();

  /** Starts the thread, once; `base`: what questions are relative to. `make` is what tests replace. */
  start(base: URL, make: () => Worker = () => new Worker(new URL("./aside.worker.ts", import.meta.url), { type: "module" })): void {
    if (this.#worker !== null || typeof Worker === "undefined") return;
    const worker = (this.#worker = make());
    worker.addEventListener("message", ({ data }: MessageEvent<Answer | null>) => {
      if (data === null) this.#isReady = true;
      else this.#settle(data);
    });
    // Then the page goes on by itself.
    worker.addEventListener("error", () => {
      this.#isReady = false;
      worker.terminate();
      for (const id of this.#waiting.keys()) this.#settle({ id, status: 0, body: new ArrayBuffer(0) });
    });
    worker.postMessage({ base: base.href } satisfies Asked);
  }

  /** The answer to a question, `viewport?report=0`; null where the thread does not run (yet): ask without it. Rejects only where `signal` says that nobody waits any more. */
  ask(question: string, signal?: AbortSignal): Promise<Answer> | null {
    const worker = this.#worker;
    if (worker === null || !this.#isReady) return null;
    if (signal?.aborted) return Promise.reject(given());
    const id = (this.#last += 1);
    return new Promise((resolve, reject) => {
      const away = (): void => {
        this.#waiting.delete(id);
        worker.postMessage({ id, question: null } satisfies Asked);
        reject(given());
      };
      signal?.addEventListener("abort", away, { once: true });
      this.#waiting.set(id, (answer) => {
        signal?.removeEventListener("abort", away);
        resolve(answer);
      });
      worker.postMessage({ id, question } satisfies Asked);
    });
  }

  #settle(answer: Answer): void {
    this.#waiting.get(answer.id)?.(answer);
    this.#waiting.delete(answer.id);
  }
}

function given(): DOMException {
  return new DOMException("nobody waits for it", "AbortError");
}
