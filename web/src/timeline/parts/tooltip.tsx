/** The event under the pointer, in a few words. */
import { count, percent, time } from "../../base/format";
import { visible } from "../../base/text";
import { hovered, offsets } from "../../app/state";
import type { Stage } from "../stage";
import { under } from "../input/hits";
import { timeLabel } from "../layout/ticks";
import { tileAt } from "../data/tiles";
import { arrivals, pointer, size } from "../local";
import { valueAt, valueLabel } from "../draw/plots";

interface Words {
  title: string;
  lines: string[];
}

/** What to say of a point of the canvas; null: nothing. */
export function wordsAt(stage: Stage, x: number, y: number): Words | null {
  const found = under(stage.store, stage.windows(), x, y);
  const { row } = found;
  const track = row?.node.track;
  if (row === null) return null;
  if (track?.kind === "counter") {
    const own = found.time - (offsets.value[row.report] ?? 0);
    const tiles = stage.store.get(row.report, track.track);
    const plot = tileAt(tiles, own)?.plot ?? null;
    const value = plot === null ? null : valueAt(plot, own);
    if (value === null) return null;
    const band = value.high > value.low ? [`${valueLabel(value.low, track.unit)} to ${valueLabel(value.high, track.unit)} within this pixel`] : [];
    return { title: `${visible(row.node.name, 120)}: ${valueLabel(value.last, track.unit)}`, lines: [...band, `at ${timeLabel(found.time)}`] };
  }
  if (found.hit === null) return null;
  const { rects } = found.hit.run;
  const { index } = found.hit;
  const name = visible(rects.names[rects.name[index]!]?.text ?? "", 400);
  const lasted = time(rects.duration[index]!);
  const begun = timeLabel(rects.start[index]! + (offsets.value[row.report] ?? 0));
  const where = visible(row.node.name, 80);
  if (rects.slices[index]! > 1) {
    return { title: `${count(rects.slices[index]!)} events in ${lasted}, busy ${percent(rects.busy[index]!)}`, lines: [`longest: ${name}`, `${where} · zoom in to tell them apart`] };
  }
  return { title: name, lines: [rects.duration[index]! > 0 ? `${lasted} from ${begun}` : `at ${begun}`, where] };
}

/** `hovered` and the pointer move it; it never gets in the way of the pointer. */
export function Tooltip({ stage }: { stage: Stage | null }) {
  const at = pointer.value;
  void hovered.value;
  void arrivals.value; // the pointer may rest while keys move what is under it, and what is there comes later
  const words = stage === null || at === null ? null : wordsAt(stage, at.x, at.y);
  if (words === null || at === null) return null;
  const left = at.x > size.value.width * 0.6 ? { right: `${size.value.width - at.x + 12}px` } : { left: `${at.x + 14}px` };
  const top = at.y > size.value.height - 110 ? { bottom: `${size.value.height - at.y + 10}px` } : { top: `${at.y + 18}px` };
  return (
    <div class="tl-tooltip" role="presentation" style={{ ...left, ...top }}>
      <strong dir="auto">{words.title}</strong>
      {words.lines.map((line) => <span dir="auto">{line}</span>)}
    </div>
  );
}
