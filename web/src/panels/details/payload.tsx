/** An NVTX payload as a tree that opens part by part; long lists come a hundred at a time. */
import { useState } from "preact/hooks";
import { copy } from "../parts/table/clipboard";
import { Section } from "../parts/section";
import { Name } from "../parts/name";
import { visibleLines } from "../../base/text";

const AT_ONCE = 100;
const OPEN_BELOW = 2;
const LONGEST = 2000;

export function Payload({ value }: { value: unknown }) {
  return (
    <Section title="Payload">
      <div class="p-tree">
        <Node name={null} value={value} depth={0} />
      </div>
      <button type="button" onClick={() => void copy(JSON.stringify(value, null, 2), "the payload as JSON")}>Copy as JSON</button>
    </Section>
  );
}

function Node({ name, value, depth }: { name: string | null; value: unknown; depth: number }) {
  const [open, setOpen] = useState(depth < OPEN_BELOW);
  const [many, setMany] = useState(AT_ONCE);
  if (value === null || typeof value !== "object") {
    return (
      <div class="p-leaf">
        {name !== null && <span class="p-name"><Name text={name} />: </span>}
        <span class={typeof value === "string" ? "p-text" : "p-figure"}><bdi>{written(value)}</bdi></span>
      </div>
    );
  }
  const entries = Object.entries(value);
  const what = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{name !== null && <span class="p-name"><Name text={name} /> </span>}<span class="p-dim">{what}</span></summary>
      {open && entries.slice(0, many).map(([key, inner]) => <Node key={key} name={key} value={inner} depth={depth + 1} />)}
      {open && entries.length > many && <button type="button" onClick={() => setMany(many + AT_ONCE)}>{entries.length - many} more</button>}
    </details>
  );
}

function written(value: unknown): string {
  return typeof value === "string" ? `"${visibleLines(value, LONGEST)}"` : String(value);
}
