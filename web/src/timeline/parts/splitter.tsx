/** The edge between names and canvas, moved by dragging or arrow keys. */
import { kept } from "../../base/dom";
import { headerWidth } from "../local";

const LEAST = 120;
const MOST = 700;

function set(width: number): void {
  headerWidth.value = Math.round(Math.min(Math.max(width, LEAST), MOST));
  kept.set("headers", String(headerWidth.value));
}

export function Splitter() {
  const down = (event: PointerEvent): void => {
    const begun = event.clientX;
    const width = headerWidth.value;
    const element = event.currentTarget as HTMLElement;
    element.setPointerCapture(event.pointerId);
    const move = (now: PointerEvent): void => set(width + now.clientX - begun);
    const up = (): void => element.removeEventListener("pointermove", move);
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up, { once: true });
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    set(headerWidth.value + (event.key === "ArrowLeft" ? -20 : 20));
    event.preventDefault();
  };
  return (
    <div
      class="tl-splitter" role="separator" tabIndex={0} aria-orientation="vertical" aria-label="Width of the names" aria-valuenow={headerWidth.value}
      aria-valuemin={LEAST} aria-valuemax={MOST} onPointerDown={down} onKeyDown={key}
    />
  );
}
