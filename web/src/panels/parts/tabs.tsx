/** Tabs as the ARIA practices describe them: one is in the tab order, arrow keys choose. */

export interface Tab<T extends string> {
  id: T;
  title: string;
  /** Has nothing to show. */
  dim?: boolean;
}

export function Tabs<T extends string>({ tabs, chosen, onChoose, label }: { tabs: readonly Tab<T>[]; chosen: T; onChoose: (id: T) => void; label: string }) {
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const next = (at + step + tabs.length) % tabs.length;
    onChoose(tabs[next]!.id);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('[role="tab"]')[next]?.focus();
  };
  return (
    <div class="p-tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {tabs.map((tab) => (
        <button key={tab.id} type="button" class={tab.dim ? "p-tab-dim" : ""} role="tab" aria-selected={tab.id === chosen} tabIndex={tab.id === chosen ? 0 : -1} onClick={() => onChoose(tab.id)}>
          {tab.title}
        </button>
      ))}
    </div>
  );
}
