/** The call stack, innermost first, as it was recorded. */
import type { EventDetails } from "../../data/types";
import { copy } from "../parts/table/clipboard";
import { Section } from "../parts/section";
import { openSource, parsed } from "../source/place";
import { Name } from "../parts/name";

type Frame = EventDetails["stack"][number];

export function Stack({ frames }: { frames: Frame[] }) {
  if (frames.length === 0) return null;
  return (
    <Section title="Stack" note={`${frames.length} ${frames.length === 1 ? "frame" : "frames"}`}>
      <ol class="p-stack">
        {frames.map((frame, i) => (
          <li key={i} title={`${frame.function}\n${place(frame)}`}>
            <Name text={frame.function || "?"} most={600} /> <Where frame={frame} />
          </li>
        ))}
      </ol>
      <button type="button" onClick={() => void copy(frames.map((frame) => `${frame.function} (${place(frame)})`).join("\n"), "the stack")}>Copy</button>
    </Section>
  );
}

/** Files of Python lead to their lines. */
function Where({ frame }: { frame: Frame }) {
  const code = parsed(place(frame));
  if (code === null) return <span class="p-dim">{short(frame)}</span>;
  return <button type="button" class="p-jump" title="Show the line with its samples" onClick={() => openSource(code)}>{short(frame)}</button>;
}

function place(frame: Frame): string {
  return frame.file ? `${frame.file}${frame.line === null ? "" : `:${frame.line}`}` : frame.module;
}

function short(frame: Frame): string {
  const whole = place(frame);
  return whole.slice(whole.lastIndexOf("/") + 1);
}
