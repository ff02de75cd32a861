/** The time axis: round steps of ns, us, ms, s, and words for them that stay short however deep one zooms. */
import type { Span } from "../../data/source";

export interface Tick {
  time: number;
  /** Empty for the small ones between. */
  label: string;
}

export interface Axis {
  step: number;
  ticks: Tick[];
  /** What is to be added to the labels up to the first that is written out, "12.345 s"; empty where all say the whole time. */
  base: string;
}

const UNITS: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];

/** The smallest of 1, 2, 5 times a power of ten that is at least `least` (ns), never below 1 ns. */
export function roundStep(least: number): number {
  if (!(least > 1)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10]) if (power * factor >= least * (1 - 1e-9)) return power * factor;
  return power * 10;
}

function unitOf(step: number): readonly [number, string] {
  // 200 us steps read better as 0.2 ms only from 10 steps on: the unit is that of the step.
  return UNITS.find(([size]) => step >= size) ?? UNITS[3]!;
}

/** A number without trailing zeros and without exponents. */
function plain(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A point of time in full, to the step: "12.345 678 s". */
export function timeLabel(time: number, step = 1): string {
  const sign = time < 0 ? "−" : "";
  const size = Math.abs(time);
  const digits = Math.min(Math.max(Math.ceil(9 - Math.log10(Math.max(step, 1))), 0), 9);
  if (size < 1e3 && step < 1e3) return `${sign}${plain(size, 0)} ns`;
  if (size < 1e6 && step < 1e6) return `${sign}${plain(size / 1e3, Math.max(digits - 6, 0))} us`;
  if (size < 1e9 && step < 1e9) return `${sign}${plain(size / 1e6, Math.max(digits - 3, 0))} ms`;
  return `${sign}${plain(size / 1e9, digits)} s`;
}

/** Ticks for a view; labels are at least `room` pixels apart. */
export function ticksOf(view: Span, width: number, room = 110): Axis {
  const length = view.end - view.begin;
  if (!(length > 0) || !(width > 0)) return { step: 1, ticks: [], base: "" };
  const step = roundStep((length / width) * room);
  const [unit, word] = unitOf(step);
  // Where labels would need more than five figures they count from the last round time, which is written out; that before the view stands at the left.
  const far = Math.max(Math.abs(view.begin), Math.abs(view.end));
  const deep = far / unit >= 1e5;
  const coarse = unit * 1000;
  const digits = Math.max(0, Math.ceil(Math.log10(unit) - Math.log10(step)));
  const minor = step >= 5 ? step / 5 : step;
  const ticks: Tick[] = [];
  const first = Math.floor(view.begin / step);
  for (let index = first; index * step <= view.end; index += 1) {
    const time = index * step;
    const round = deep ? Math.floor(time / coarse + 1e-9) * coarse : 0;
    const label = deep && time - round < step / 2 ? timeLabel(round, coarse) : `${deep ? "+" : ""}${plain((time - round) / unit, digits)} ${word}`;
    ticks.push({ time, label });
    if (minor < step) for (let part = 1; part < 5; part += 1) ticks.push({ time: time + part * minor, label: "" });
  }
  return { step, ticks: ticks.filter((one) => one.time >= view.begin - step && one.time <= view.end), base: deep ? timeLabel(Math.floor(view.begin / coarse) * coarse, coarse) : "" };
}
