/** What benchmarks read, through `performance.getEntriesByName` or a PerformanceObserver; nothing is sent anywhere.
 *
 *  `warplens:frame`: the script of a frame, `detail.rectangles` drawn. What the browser paints after it is in its own traces only.
 *  `warplens:refine`: from the wish for finer data to the end of the script of the frame that shows it.
 *  `warplens:first`: a mark, when data were painted for the first time.
 */

/** The browser keeps entries until the page clears them: this is our maximum. */
const MOST = 4000;
let frames = 0;
let isFirst = true;

export function measureFrame(begun: number, rectangles: number): void {
  performance.measure("warplens:frame", { start: begun, end: performance.now(), detail: { rectangles } });
  frames += 1;
  if (frames % MOST === 0) {
    performance.clearMeasures("warplens:frame");
    performance.clearMeasures("warplens:refine");
  }
  if (isFirst && rectangles > 0) {
    isFirst = false;
    performance.mark("warplens:first");
  }
}

export function measureRefine(since: number): void {
  performance.measure("warplens:refine", { start: since, end: performance.now() });
}
