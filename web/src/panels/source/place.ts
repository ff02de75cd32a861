/** The file and line that the panel of source lines shows. */
import { signal } from "@preact/signals";
import { panel } from "../../app/state";

export interface Place {
  /** Empty: the hottest file. */
  file: string;
  line: number | null;
}

export const place = signal<Place>({ file: "", line: null });

/** Read `/app/train.py:10`. Null where it is no file of Python. */
export function parsed(text: string): Place | null {
  const match = /^(.+\.pyw?)(?::(\d+))?$/.exec(text);
  return match === null ? null : { file: match[1]!, line: match[2] === undefined ? null : Number(match[2]) };
}

/** Open the panel there. */
export function openSource(at: Place): void {
  place.value = at;
  panel.value = "source";
}
