/** The page: toolbar, timeline with its sidebar, panels below, status line. */
import { render } from "preact";
import { useEffect } from "preact/hooks";
import type { Source } from "../data/source";
import { Details } from "../panels";
import { Timeline } from "../timeline";
import { begin } from "../timeline/early";
import { type Size, headerWidth } from "../timeline/local";
import { follow } from "./address";
import { boot, stage } from "./boot";
import { Bottom, height } from "./bottom";
import { Guarded } from "./guarded";
import { Help } from "./keys/help";
import { listen } from "./keys/keys";
import { addPageKeys } from "./keys/shortcuts";
import { meta, panel } from "./state";
import { Status } from "./status";
import { followTheme } from "./theme";
import { Toolbar } from "./toolbar";

/** Opens the reports of a source and shows them in an element. `isThere`: the source has its first answers, the page is laid out once, with them. */
export function open(from: Source, place: Element, isThere = false): void {
  followTheme(document.documentElement);
  addPageKeys();
  listen(window);
  const show = (): void => render(<App />, place);
  if (!isThere) {
    void boot(from, () => follow(window));
    show();
    return;
  }
  let begun = Promise.resolve();
  const placed = (): void => {
    follow(window);
    begun = begin(guess());
  };
  void boot(from, placed).then(() => begun).then(show);
}

/** How large the timeline will be in this window, nearly: the details at its right, toolbar, tabs and status line are what they are at first. */
function guess(): Size {
  const beside = headerWidth.value + 317;
  const above = 125 + (panel.value === null ? 0 : height.value);
  return { width: Math.max(window.innerWidth - beside, 0), height: Math.max(window.innerHeight - above, 0), ratio: window.devicePixelRatio || 1 };
}

function App() {
  useEffect(() => {
    if (meta.value !== null) document.title = `${meta.value.title} – warplens`;
  }, [meta.value]);
  const now = stage.value;
  if (now.is === "failed") return <Failed why={now.why} again={() => window.location.reload()} />;
  const isOpening = now.is === "loading";
  // The frame is laid out while the report is opened: how wide the timeline is must be known when its first question is asked.
  return (
    <>
      <div class="shell" inert={isOpening}>
        <Toolbar />
        <main class="stage">
          <Guarded what="The timeline"><Timeline /></Guarded>
          <Guarded what="The sidebar"><Details /></Guarded>
        </main>
        <Bottom />
        <Status />
        <Help />
      </div>
      {isOpening && <Opening />}
    </>
  );
}

function Opening() {
  return (
    <div class="alone opening" aria-busy="true">
      <p role="status">Opening the report …</p>
      <p class="quiet">The first look at a large report writes an index beside it, which takes some seconds.</p>
    </div>
  );
}

function Failed({ why, again }: { why: string; again: () => void }) {
  return (
    <main class="alone">
      <h1>The report could not be opened</h1>
      <p role="alert">{why}</p>
      <button type="button" onClick={again}>Try again</button>
    </main>
  );
}
