/** Whether the page is dark: the user's choice, else the system's. */
import { computed, signal } from "@preact/signals";
import { theme } from "../../app/state";

const query = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
const system = signal(query?.matches ?? true);
query?.addEventListener("change", (event) => (system.value = event.matches));

export const isDark = computed(() => (theme.value === "system" ? system.value : theme.value === "dark"));
