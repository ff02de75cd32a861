/** A plot by uPlot in the page's colours: made anew when its look changes, else only its data and size do. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../../../app/state";
import { colors, css } from "./color";
import { useSize } from "./size";

export type PlotOptions = Omit<uPlot.Options, "width" | "height">;

interface Props {
  data: uPlot.AlignedData;
  /** Called again when `look` or the theme changes. */
  options: () => PlotOptions;
  /** What the options depend on. */
  look: string;
  onReady?: (plot: uPlot | null) => void;
}

const LEAST = 60;

export function Plot({ data, options, look, onReady }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [width, height] = useSize(box, [600, 180]);
  useEffect(() => {
    const node = box.current;
    if (node === null || document.createElement("canvas").getContext("2d") === null) return;
    const made = new uPlot({ ...options(), width: Math.max(width, LEAST), height: Math.max(height, LEAST) }, data, node);
    plot.current = made;
    onReady?.(made);
    return () => {
      plot.current = null;
      onReady?.(null);
      made.destroy();
    };
  }, [look, theme.value]);
  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => plot.current?.setSize({ width: Math.max(width, LEAST), height: Math.max(height, LEAST) }), [width, height]);
  return <div class="p-plot" ref={box} aria-hidden="true" />;
}

/** An axis in the page's colours; `write` makes the words of its ticks. */
export function axis(write: (value: number) => string, more: Partial<uPlot.Axis> = {}): uPlot.Axis {
  const scheme = colors();
  return {
    stroke: scheme.quiet,
    font: "11px system-ui, sans-serif",
    size: 26,
    gap: 3,
    grid: { stroke: scheme.faintRule, width: 1 },
    ticks: { stroke: scheme.rule, width: 1, size: 4 },
    values: (_plot, ticks) => ticks.map((tick) => (tick === null ? "" : write(tick))),
    ...more,
  };
}

/** Room around what is drawn: above, right, below, left. */
export const PADDING: uPlot.Padding = [10, 14, 0, 0];

/** The colour of series number i, with a paler one to fill with. */
export function seriesColor(i: number, share = 1): string {
  const scheme = colors();
  const color = css(scheme.fills[i % scheme.fills.length]!);
  return share >= 1 ? color : `${color}${Math.round(share * 255).toString(16).padStart(2, "0")}`;
}

/** The place of ticks at times that people count in: 1, 2, 5, 10 … */
export const ROUND: number[] = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** The place of ticks at sizes: powers of two. */
export const DOUBLED: number[] = Array.from({ length: 60 }, (_, power) => 2 ** power);
