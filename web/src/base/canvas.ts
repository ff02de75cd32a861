/** The colours of the canvas, dark and light; fills come from Paul Tol's and Okabe and Ito's schemes, which colour-blind people can tell apart. */
import { mix, rgb } from "./rgb";

export interface CanvasTheme {
  dark: boolean;
  ground: number;
  /** Rows that hold others, and the axis. */
  raised: number;
  rule: string;
  faintRule: string;
  ink: number;
  quiet: string;
  accent: string;
  second: string;
  cursor: string;
  hatch: string;
  /** Fills by the hash of a name. */
  fills: readonly number[];
  /** Fills by what an event is. */
  kinds: Readonly<Record<string, number>>;
  /** Thread and lock states. */
  states: Readonly<Record<string, number>>;
}

const NAMES = ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#b8a1dc", "#d9b382", "#7fb7be", "#c3cf8b", "#e3a6cf"].map(rgb);

const KINDS: Record<string, number> = {
  compute: rgb("#56b4e9"),
  communication: rgb("#cc79a7"),
  "to device": rgb("#31b98a"),
  "to host": rgb("#ee7733"),
  "on device": rgb("#e6c84f"),
  set: rgb("#bbb05a"),
  launch: rgb("#8aa4c8"),
  wait: rgb("#d96c5c"),
  memory: rgb("#c9a36a"),
  range: rgb("#7cc4a4"),
  python: rgb("#d8cf73"),
  system: rgb("#a9a3c9"),
  other: rgb("#a5adb8"),
};

const STATES: Record<string, number> = {
  running: rgb("#2fae7a"),
  runnable: rgb("#e69f00"),
  blocked: rgb("#7d8794"),
  hold: rgb("#2fae7a"),
  wait: rgb("#d55e00"),
  brief: rgb("#56b4e9"),
};

function toned(colors: Readonly<Record<string, number>>, tone: number, share: number): Record<string, number> {
  return Object.fromEntries(Object.entries(colors).map(([key, value]) => [key, mix(value, tone, share)]));
}

const BLACK = rgb("#0d1117");
const WHITE = rgb("#ffffff");

export const DARK: CanvasTheme = {
  dark: true,
  ground: rgb("#11151b"),
  raised: rgb("#181d25"),
  rule: "#2a313c",
  faintRule: "#1c222b",
  ink: rgb("#e6eaf0"),
  quiet: "#8b95a3",
  accent: "#ffd166",
  second: "#4cc9f0",
  cursor: "#c7d0db",
  hatch: "#1a2029",
  fills: NAMES.map((one) => mix(one, BLACK, 0.86)),
  kinds: toned(KINDS, BLACK, 0.9),
  states: toned(STATES, BLACK, 0.85),
};

export const LIGHT: CanvasTheme = {
  dark: false,
  ground: WHITE,
  raised: rgb("#f3f5f8"),
  rule: "#d5dae1",
  faintRule: "#eceff3",
  ink: rgb("#1b222c"),
  quiet: "#66707d",
  accent: "#b45309",
  second: "#0369a1",
  cursor: "#3b4552",
  hatch: "#f4f6f9",
  fills: NAMES,
  kinds: KINDS,
  states: STATES,
};
