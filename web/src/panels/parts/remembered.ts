/** Keeps the choices of a panel while another one is open, as long as its source exists. */
import { source } from "../../app/state";

const NONE = {};
const all = new WeakMap<object, Map<string, unknown>>();

/** Return what `make` made for this key the first time. */
export function remembered<T>(key: string, make: () => T): T {
  const of = source.peek() ?? NONE;
  let kept = all.get(of);
  if (kept === undefined) all.set(of, (kept = new Map()));
  if (!kept.has(key)) kept.set(key, make());
  return kept.get(key) as T;
}
