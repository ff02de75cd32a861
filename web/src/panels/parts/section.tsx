/** A section of a sidebar that folds, and stays folded for the next event. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

const folded = signal<ReadonlySet<string>>(new Set());

export function Section({ title, note, children }: { title: string; note?: string; children: ComponentChildren }) {
  const onToggle = (open: boolean) => {
    if (open === !folded.value.has(title)) return;
    const next = new Set(folded.value);
    if (open) next.delete(title);
    else next.add(title);
    folded.value = next;
  };
  return (
    <details class="p-section" open={!folded.value.has(title)} onToggle={(event) => onToggle(event.currentTarget.open)}>
      <summary>{title}{note && <span class="p-dim"> {note}</span>}</summary>
      {children}
    </details>
  );
}
