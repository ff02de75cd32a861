/** The answers to the page's first requests, embedded by the server. */
import type { Meta, TrackNode } from "./types";

export interface First {
  meta: Meta;
  /** One tree for each report. */
  tracks: TrackNode[][];
}

/** Takes it out of the document; null where it has none. */
export function firstOf(page: Document): First | null {
  const found = page.getElementById("first");
  found?.remove();
  return found === null ? null : (JSON.parse(found.textContent ?? "") as First);
}
