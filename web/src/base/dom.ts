/** Small helpers for the DOM. */

/** Calls `run` once, `wait` ms after the last call; `flush` does it now, where one is due. */
export function later(run: () => void, wait: number): { (): void; flush(): void; cancel(): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const cancel = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  const call = () => {
    cancel();
    timer = setTimeout(() => {
      timer = undefined;
      run();
    }, wait);
  };
  const flush = () => {
    if (timer === undefined) return;
    cancel();
    run();
  };
  return Object.assign(call, { flush, cancel });
}

/** What this browser keeps for this page, where it may: a page from disk, or a private window, often may not. */
export const kept = {
  get(key: string): string | null {
    try {
      return localStorage.getItem(`warplens.${key}`);
    } catch {
      return null;
    }
  },
  set(key: string, value: string): void {
    try {
      localStorage.setItem(`warplens.${key}`, value);
    } catch {
      // Then it is as at first the next time.
    }
  },
};

/** Calls `run` when the page has nothing to do; at once where the browser does not say when that is. */
export function whenIdle(run: () => void): void {
  if (typeof requestIdleCallback === "function") requestIdleCallback(run, { timeout: 1000 });
  else setTimeout(run);
}
