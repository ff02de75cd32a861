/** The table of all keys and their actions, from which the help is made. A part adds rows with `addKeys`. */
import { signal } from "@preact/signals";

export interface Binding {
  /** As the browser names them (`KeyboardEvent.key`), letters small; "Shift+m" where a letter needs it. Any of them. */
  keys: readonly string[];
  /** Heading in the help. */
  group: string;
  /** What it does, for the help: "Zoom in". */
  does: string;
  /** Return false where there was nothing to do: then others may have the key. */
  run: (event: KeyboardEvent) => boolean | void;
  /** Called when the key is let go. */
  done?: () => void;
  /** Also while somebody types in a field. */
  always?: boolean;
}

export const bindings = signal<readonly Binding[]>([]);

/** Adds rows to the table; the newest win. Returns what takes them away again. */
export function addKeys(more: readonly Binding[]): () => void {
  bindings.value = [...bindings.value, ...more];
  return () => {
    bindings.value = bindings.value.filter((one) => !more.includes(one));
  };
}

/** What the table calls the keys of an event. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "shiftKey">): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  // Of signs, Shift is part of how they are typed ("?" on most keyboards); of letters and named keys it is another key.
  return event.shiftKey && (event.key.length > 1 || key !== event.key.toUpperCase()) ? `Shift+${key}` : key;
}

/** Is somebody typing there? */
export function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["button", "checkbox", "radio", "range", "reset", "submit"].includes(target.type);
}

/** Listens to a window until the returned function is called. Parts that have the focus come first: they prevent the default. */
export function listen(to: Window): () => void {
  const held = new Map<string, () => void>();
  const down = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const name = nameOf(event);
    // What lies over the page has the keys: Escape closes it, and what is behind stays as it is.
    if (name !== "?" && to.document.querySelector("dialog[open]") !== null) return;
    const writes = typing(event.target);
    for (const one of bindings.peek().toReversed()) {
      if (!one.keys.includes(name) || (writes && one.always !== true)) continue;
      if (one.run(event) === false) continue;
      event.preventDefault();
      if (one.done !== undefined) held.set(event.code, one.done);
      return;
    }
  };
  const up = (event: KeyboardEvent) => {
    held.get(event.code)?.();
    held.delete(event.code);
  };
  const letGo = () => {
    for (const done of held.values()) done();
    held.clear();
  };
  to.addEventListener("keydown", down);
  to.addEventListener("keyup", up);
  to.addEventListener("blur", letGo);
  return () => {
    to.removeEventListener("keydown", down);
    to.removeEventListener("keyup", up);
    to.removeEventListener("blur", letGo);
    letGo();
  };
}

/** How a key is written on a keyboard: "ArrowLeft" is "←". */
export function cap(key: string): string {
  const caps: Record<string, string> = {
    ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", PageUp: "Page up", PageDown: "Page down", " ": "Space",
  };
  return key.split(/\+(?=.)/).map((part) => caps[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join(" + ");
}
