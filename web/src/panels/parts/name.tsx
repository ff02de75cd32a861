/** A name from a trace: text and nothing else, on its own writing direction, with what cannot be seen written out. */
import { visible } from "../../base/text";

export function Name({ text, most = 300 }: { text: string; most?: number }) {
  return <bdi>{visible(text, most)}</bdi>;
}
