/** A histogram of durations with the place of one of them; said in words for those who do not see it. */
import { count, time } from "../table/units";

export interface HistogramBar {
  /** From 0 to 1, of the width and of the height. */
  x: number;
  width: number;
  height: number;
  label: string;
}

/** Lay bars of equal width, heights by the square root: rare long ones stay seen beside many short ones. */
export function bars(edges: readonly number[], counts: readonly number[]): HistogramBar[] {
  const most = Math.max(...counts, 1);
  return counts.map((each, i) => ({
    x: i / counts.length,
    width: 1 / counts.length,
    height: Math.sqrt(each / most),
    label: `${time(edges[i]!)} to ${time(edges[i + 1]!)}: ${count(each)}`,
  }));
}

/** Where a value lies among the edges, from 0 to 1; bins need not be of equal size. */
export function placed(edges: readonly number[], value: number): number {
  const bins = edges.length - 1;
  if (bins < 1 || value <= edges[0]!) return 0;
  if (value >= edges[bins]!) return 1;
  const bin = edges.findLastIndex((edge) => edge <= value);
  const size = edges[bin + 1]! - edges[bin]! || 1;
  return (bin + (value - edges[bin]!) / size) / bins;
}

const [WIDTH, HEIGHT] = [260, 60];

export function Histogram({ edges, counts, at }: { edges: number[]; counts: number[]; at: number }) {
  const all = bars(edges, counts);
  const x = placed(edges, at) * WIDTH;
  const highest = counts.indexOf(Math.max(...counts));
  return (
    <figure class="p-histogram">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
        aria-label={`Histogram from ${time(edges[0]!)} to ${time(edges.at(-1)!)}; most are ${all[highest]?.label ?? ""}; this one took ${time(at)}`}>
        {all.map((bar, i) => (
          <rect key={i} class="p-histogram-bar" x={bar.x * WIDTH + 0.5} width={Math.max(bar.width * WIDTH - 1, 0.5)} y={HEIGHT * (1 - bar.height)} height={HEIGHT * bar.height}>
            <title>{bar.label}</title>
          </rect>
        ))}
        <line class="p-histogram-at" x1={x} x2={x} y1={0} y2={HEIGHT} />
      </svg>
      <figcaption aria-hidden="true">
        <span>{time(edges[0]!)}</span>
        <span>{time(edges.at(-1)!)}</span>
      </figcaption>
    </figure>
  );
}
