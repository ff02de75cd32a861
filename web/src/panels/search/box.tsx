/** The search field: text or regular expression, how many hits, next and previous, and the names that match. */
import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { found } from "../../app/state";
import { count } from "../parts/table/units";
import { names, search, searching, step } from "./searching";
import { Name } from "../parts/name";
import { visible } from "../../base/text";

const WAIT = 200;
const MOST = 200;

export function SearchBox() {
  const text = useSignal(found.peek()?.text ?? "");
  const regex = useSignal(found.peek()?.regex ?? false);
  const open = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const field = useRef<HTMLInputElement>(null);
  useSignalEffect(() => {
    // Somebody else searched, or ended it ("find all" of the details, the address, a key): show what for.
    const state = found.value;
    if (document.activeElement === field.current) return;
    clearTimeout(timer.current);
    text.value = state?.text ?? "";
    if (state !== null) regex.value = state.regex;
  });
  const now = async () => {
    clearTimeout(timer.current);
    if (found.value === null ? text.value === "" : found.value.text === text.value && found.value.regex === regex.value) return;
    await search(text.value, regex.value);
  };
  const soon = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void now(), WAIT);
  };
  const go = async (backward: boolean) => {
    await now();
    await step(backward);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") void go(event.shiftKey);
    else if (event.key === "ArrowDown" && names.value.length > 0) {
      open.value = true;
      requestAnimationFrame(() => document.getElementById("search-names")?.querySelector<HTMLElement>("button")?.focus());
    } else if (event.key === "Escape") {
      // The timeline has the keys again and the hits stay, so that n and p walk through them; Escape there ends the search.
      if (open.value) open.value = false;
      else field.current?.blur();
      void now();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search class="p-search">
      <input ref={field} id="search" type="search" value={text.value} placeholder="Search names  ( / )" aria-label="Search names" autocomplete="off" spellcheck={false}
        maxLength={1000}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          soon();
        }}
        onKeyDown={onKeyDown} />
      <label class="p-choice" title="Read the text as a regular expression">
        <input type="checkbox" checked={regex.value} aria-label="Regular expression"
          onChange={(event) => {
            regex.value = event.currentTarget.checked;
            void now();
          }} />
        .*
      </label>
      <button type="button" class="p-hits" disabled={names.value.length === 0} aria-expanded={open.value} aria-controls={open.value && names.value.length > 0 ? "search-names" : undefined} title="Match mode" onClick={() => (open.value = !open.value)}>
        <span role="status">{said()}</span>
      </button>
      <button type="button" aria-label="Previous hit" title="Previous hit (Shift+Enter, p)" disabled={!found.value?.total} onClick={() => void go(true)}>↑</button>
      <button type="button" aria-label="Next hit" title="Next hit (Enter, n)" disabled={!found.value?.total} onClick={() => void go(false)}>↓</button>
      {open.value && names.value.length > 0 && <Names onClose={() => (open.value = false)} field={field} onChoose={(name) => {
        text.value = name;
        regex.value = false;
        void search(name, false).then(() => step(false));
      }} />}
    </search>
  );
}

function said(): string {
  if (searching.value) return "…";
  const state = found.value;
  if (state !== null && state.place !== null) return `${count(state.place)} of ${count(state.total)}`;
  return state === null ? "" : state.total === 1 ? "1 hit" : `${count(state.total)} hits`;
}

function Names({ onClose, onChoose, field }: { onClose: () => void; onChoose: (name: string) => void; field: { current: HTMLInputElement | null } }) {
  const list = useRef<HTMLUListElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (event.key === "ArrowDown") all[Math.min(at + 1, all.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (at <= 0 ? field.current : all[at - 1])?.focus();
    else if (event.key === "Escape") {
      onClose();
      field.current?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div id="search-names" class="p-names" onKeyDown={onKeyDown}>
      <ul ref={list} aria-label="Names that match">
        {names.value.slice(0, MOST).map((one) => (
          <li key={`${one.layer}\n${one.text}`}>
            <button type="button" title={visible(one.text)} onClick={() => { onChoose(one.text); onClose(); }}>
              <span class="p-count">{count(one.count)}</span> <Name text={one.text} /> <span class="p-dim">{one.layer}</span>
            </button>
          </li>
        ))}
      </ul>
      {names.value.length > MOST && <p class="p-dim">and {count(names.value.length - MOST)} more</p>}
    </div>
  );
}
