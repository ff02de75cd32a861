/** Copies text to the clipboard, and reports success or failure. */
import { notice } from "../../../app/state";

/** Copy and say what was copied; pages opened from disk have no clipboard interface, so a selected text field stands in. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notice.value = `Copied ${what}.`;
  } catch {
    notice.value = byField(text) ? `Copied ${what}.` : `The browser does not let this page copy ${what}.`;
  }
}

function byField(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "p-offscreen";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}
