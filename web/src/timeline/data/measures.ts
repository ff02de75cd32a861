/** What benchmarks read, through `performance.getEntriesByName` or a PerformanceObserver; nothing is sent anywhere.
 *
 *  `warpline:frame`: from the begin of a frame's work until the page is free again, its canvas painted and handed over; `detail.rectangles` drawn.
 *  `warpline:refine`: from the wish for finer data to the end of the frame that shows it.
 *  `warpline:first`: a mark, at the end of the frame that shows data for the first time.
 */

/** The browser keeps entries until somebody clears them: so many of ours at most. */
const MOST = 4000;
let frames = 0;
let isFirst = true;

interface Drawn {
  begun: number;
  rectangles: number;
  /** Since when what it shows was wished for; null: it shows nothing new. */
  since: number | null;
}

const drawn: Drawn[] = [];
let channel: MessageChannel | null = null;

/** What the canvas recorded is painted when the script of a frame is done: a message to ourselves comes after that. */
export function measure(frame: Drawn): void {
  drawn.push(frame);
  if (channel === null) {
    channel = new MessageChannel();
    channel.port1.addEventListener("message", () => {
      const end = performance.now();
      for (const one of drawn.splice(0)) measured(one, end);
    });
    channel.port1.start();
  }
  channel.port2.postMessage(null);
}

function measured({ begun, rectangles, since }: Drawn, end: number): void {
  performance.measure("warpline:frame", { start: begun, end, detail: { rectangles } });
  if (since !== null) performance.measure("warpline:refine", { start: since, end });
  frames += 1;
  if (frames % MOST === 0) {
    performance.clearMeasures("warpline:frame");
    performance.clearMeasures("warpline:refine");
  }
  if (isFirst && rectangles > 0) {
    isFirst = false;
    performance.mark("warpline:first", { startTime: end });
  }
}
