/** Colours of names in panels: the timeline's own, so that a name looks the same everywhere. */
import { theme } from "../../../app/state";
import { hash, kindOf } from "../../../base/names";
import { contrast, css, mix } from "../../../base/rgb";
import { type CanvasTheme, DARK, LIGHT } from "../../../base/canvas";

/** Whether the page is dark now. */
export function dark(): boolean {
  if (theme.value !== "system") return theme.value === "dark";
  return globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false;
}

export function colors(): CanvasTheme {
  return dark() ? DARK : LIGHT;
}

/** The fill of a name. */
export function filled(name: string, of: CanvasTheme): number {
  return of.fills[hash(name) % of.fills.length]!;
}

/** The fill of what kind of work a name is. */
export function kindColor(layer: string, name: string, of: CanvasTheme): number {
  return of.kinds[kindOf(layer, name)] ?? of.kinds["other"]!;
}

/** What is read on a fill. */
export function inkOn(fill: number): string {
  return contrast(fill, 0x0d1117) >= contrast(fill, 0xffffff) ? "#0d1117" : "#ffffff";
}

export { css, mix };
