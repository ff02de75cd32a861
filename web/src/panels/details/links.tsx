/** Events related to an event: its launch, kernel, call, ranges, waits; each link selects and jumps. */
import type { EventDetails, Located } from "../../data/types";
import { goTo } from "../parts/jump";
import { Section } from "../parts/section";
import { time } from "../parts/table/units";
import { Name } from "../parts/name";
import { visible } from "../../base/text";

const WORDS: Record<string, string> = {
  launch: "Launched by", kernel: "Kernel", inside: "Inside", copy: "Copy", memset: "Memset", graph: "Graph", api: "Call", nvtx: "In the range", wait: "Waits for", waited: "Waited for by",
  collective: "Same collective", projection: "On the GPU", gpu: "On the GPU",
};

export function Links({ links, from }: { links: EventDetails["links"]; from: Located }) {
  if (links.length === 0) return null;
  return (
    <Section title="Linked" note={String(links.length)}>
      <ul class="p-links">
        {links.map((link) => (
          <li key={`${link.relation} ${link.table} ${link.process} ${link.row}`}>
            <span class="p-dim">{WORDS[link.relation] ?? link.relation}</span>{" "}
            <button type="button" class="p-jump" title={visible(link.name)} onClick={() => goTo(link)}><Name text={link.name || link.table} most={200} /></button>
            <span class="p-dim"> {time(link.duration)}, {apart(from, link)}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** How far its start lies from ours, in words. */
export function apart(from: Located, to: Located): string {
  const by = to.start - from.start;
  return by === 0 ? "at the same time" : `${time(Math.abs(by))} ${by > 0 ? "later" : "earlier"}`;
}
