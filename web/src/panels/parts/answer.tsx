/** Shows the answer to a request: pending, complete or failed. One hook and one frame for every panel. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Answer<T> {
  value: T | null;
  error: string | null;
  busy: boolean;
  /** Ask once more. */
  again: () => void;
}

const NOTHING = { value: null, error: null, busy: false } as const;

/**
 * Ask when the keys change, `wait` ms after the last change; give up what nobody waits for. The old answer stays until the new one is there,
 * so that nothing flickers, unless the first key (what it is about) changed. `ask` null: nothing to ask.
 */
export function useAnswer<T>(ask: ((signal: AbortSignal) => Promise<T>) | null, keys: readonly unknown[], wait = 0): Answer<T> {
  const [state, setState] = useState<Omit<Answer<T>, "again">>(NOTHING);
  const [turn, setTurn] = useState(0);
  const about = useRef<unknown>(undefined);
  useEffect(() => {
    const same = about.current === keys[0];
    about.current = keys[0];
    if (ask === null) {
      setState(NOTHING);
      return;
    }
    const control = new AbortController();
    setState((old) => ({ value: same ? old.value : null, error: null, busy: true }));
    const start = () =>
      ask(control.signal).then(
        (value) => {
          if (!control.signal.aborted) setState({ value, error: null, busy: false });
        },
        (error: unknown) => {
          if (!control.signal.aborted) setState({ value: null, error: error instanceof Error ? error.message : String(error), busy: false });
        },
      );
    const timer = wait > 0 ? setTimeout(start, wait) : null;
    if (timer === null) void start();
    return () => {
      control.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [...keys, turn]);
  return { ...state, again: () => setTurn((old) => old + 1) };
}

interface Props<T> {
  of: Answer<T>;
  /** "the findings": completes "Loading …" and "… could not be loaded". */
  what: string;
  children: (value: T) => ComponentChildren;
}

/** The answer, or in words why it is not there. */
export function Answered<T>({ of, what, children }: Props<T>) {
  if (of.value !== null) {
    return (
      <div class="p-answer" aria-busy={of.busy}>
        {children(of.value)}
      </div>
    );
  }
  if (of.error !== null && lacks(of.error)) return <Empty>{of.error.startsWith("does not") ? `The report ${of.error}` : of.error}</Empty>;
  if (of.error !== null) {
    return (
      <div class="p-said p-failed" role="alert">
        <p>
          {what[0]!.toUpperCase() + what.slice(1)} could not be loaded: {of.error}
        </p>
        <button type="button" onClick={of.again}>
          Try again
        </button>
      </div>
    );
  }
  return of.busy ? (
    <p class="p-said p-wait" role="status">
      Loading {what} …
    </p>
  ) : null;
}

/** Is it no failure, but that the report, or an exported page, has no such data? Asking again would not help. */
function lacks(error: string): boolean {
  return error.startsWith("does not contain") || error.startsWith("This page, which was exported,");
}

/** Words where there is nothing to show: what is missing and, where known, how to get it. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="p-said p-empty">{children}</p>;
}
