/** The legend of colours: the kinds of work that these reports have. */
import { useComputed } from "@preact/signals";
import { kindOf } from "../base/names";
import { DARK, LIGHT } from "../base/canvas";
import { css } from "../base/rgb";
import { isDark } from "../timeline/parts/dark";
import type { TrackNode } from "../data/types";
import { colorBy, trees } from "./state";

/** Names that stand for all kinds that a layer can have. */
const SAMPLES = ["", "ncclAllReduce", "HtoD", "DtoH", "cudaLaunchKernel", "cudaMalloc", "cudaDeviceSynchronize"];
/** Their colour says how a thread or a lock is, not what kind of work it does. */
const STATES = new Set(["thread_states", "gil"]);

export function kinds(all: readonly TrackNode[]): string[] {
  const layers = new Set<string>();
  const visit = (node: TrackNode): void => {
    if (node.track !== undefined && node.track.kind !== "counter" && !STATES.has(node.track.layer)) layers.add(node.track.layer);
    node.children.forEach(visit);
  };
  all.forEach(visit);
  const found = new Set([...layers].flatMap((layer) => SAMPLES.map((name) => kindOf(layer, name))));
  return Object.keys(DARK.kinds).filter((kind) => found.has(kind) && kind !== "other");
}

export function Legend() {
  const list = useComputed(() => kinds(trees.value.flat()));
  if (colorBy.value !== "category") return null;
  const colors = (isDark.value ? DARK : LIGHT).kinds;
  return (
    <ul class="legend" aria-label="Colours by category">
      {list.value.map((kind) => (
        <li key={kind}>
          <span class="swatch" style={{ background: css(colors[kind]!) }} /> {kind}
        </li>
      ))}
    </ul>
  );
}
