/** Dark or light: the user's choice, else the system's; the style sheet reads it from the root element. */
import { effect } from "@preact/signals";
import { kept } from "../base/dom";
import { isDark } from "../timeline/parts/dark";
import { type Theme, theme } from "./state";

const NEXT: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };

export function followTheme(root: HTMLElement): () => void {
  const before = kept.get("theme");
  if (before === "dark" || before === "light") theme.value = before;
  return effect(() => {
    root.dataset["theme"] = isDark.value ? "dark" : "light";
    kept.set("theme", theme.value);
  });
}

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
}
