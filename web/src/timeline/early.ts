/** Requests the first picture before the page is laid out, with a guessed size of the timeline, so that the server works meanwhile. */
import { source } from "../app/state";
import type { Source } from "../data/source";
import { Loader } from "./data/loader";
import { Store } from "./data/tiles";
import { wishesFor } from "./data/wishes";
import { windowsOf } from "./draw/frame";
import { type Size, layout, pinnedScroll, scroll, size } from "./local";

interface Begun {
  from: Source;
  store: Store;
  loader: Loader;
}

/** An answer that takes longer than this, ms, is not waited for. */
const PATIENCE = 150;

let early: Begun | null = null;

/** Asks for what a timeline of this size would show of the source that is open. Resolves when an answer is there, or takes its time: while the
 *  page is laid out, the browser would keep the answer back. */
export function begin(guess: Size): Promise<void> {
  const from = source.peek();
  if (from === null) return Promise.resolve();
  size.value = guess;
  return new Promise((done) => {
    const store = new Store();
    // The loader that takes over finds the answer in the store, or requests it again.
    const loader = new Loader(from, store, { came: () => done(), failed: () => done() });
    early = { from, store, loader };
    for (const wish of wishesFor(windowsOf(layout.value, scroll.value, pinnedScroll.value, guess.height))) loader.want(wish);
    if (loader.busy) setTimeout(done, PATIENCE);
    else done();
  });
}

/** What was asked of this source, once. */
export function taken(from: Source | null): Begun | null {
  const found = early;
  early = null;
  if (found === null || found.from === from) return found;
  found.loader.close();
  return null;
}
