/** A flame graph or tree map that is zoomed by click and by keys; screen readers get the focused box. */
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { theme } from "../../app/state";
import type { Flame, FlameNode } from "../../data/types";
import { useSize } from "../parts/drawing/size";
import { percent, quantity } from "../parts/table/units";
import type { Rectangle } from "./draw";
import { boxAt, paint } from "./draw";
import type { Parents } from "./layout";
import { icicle, levels, neighbour, pathTo, trunk } from "./layout";
import { treemap } from "./treemap";
import { Name } from "../parts/name";

const ROW = 18;
const LEAST = 0.6;

interface Props {
  flame: Flame;
  parents: Parents;
  shape: "flame" | "map";
  zoomed: FlameNode;
  onZoom: (node: FlameNode) => void;
  matches: ReadonlySet<FlameNode> | null;
}

export function Graph({ flame, parents, shape, zoomed, onZoom, matches }: Props) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, height] = useSize(box);
  const [focus, setFocus] = useState<FlameNode | null>(null);
  const [hover, setHover] = useState<{ node: FlameNode; x: number; y: number } | null>(null);
  const [boxes, high] = useMemo(() => rectangles(zoomed, parents, shape, width, height), [zoomed, parents, shape, width, height]);
  useEffect(() => {
    if (canvas.current) paint(canvas.current, width, high, boxes, { matches, focus, hover: hover?.node ?? null });
  }, [boxes, width, high, matches, focus, hover?.node, theme.value]);

  useEffect(() => {
    // Where stacks part is what one wants to see; the rows above it are there to scroll to.
    if (box.current && high > height) box.current.scrollTop = (pathTo(zoomed, parents).length + trunk(zoomed).length - 3) * ROW;
  }, [zoomed, parents, shape, high > height]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = focus ?? zoomed;
    const next = neighbour(at, event.key, parents);
    if (next !== null) {
      setFocus(focus === null && event.key === "ArrowDown" ? at : next);
      // Whatever leaves the zoomed part would be out of sight: zoom out with it.
      if (!pathTo(next, parents).includes(zoomed) && !pathTo(zoomed, parents).includes(next)) onZoom(parents.get(next) ?? next);
    } else if (event.key === "Enter" || event.key === " ") onZoom(at);
    else if (event.key === "Escape" || event.key === "Backspace") {
      if (zoomed === flame.root && event.key === "Escape") return;
      onZoom(event.key === "Escape" ? flame.root : (parents.get(zoomed) ?? flame.root));
    } else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const under = (event: MouseEvent) => {
    const place = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - place.left, event.clientY - place.top];
    const hit = boxAt(boxes, x, y);
    return hit && { node: hit.node, x: event.clientX, y: event.clientY };
  };
  return (
    <div class="p-flame" ref={box} tabIndex={0} role="tree" aria-label={`${shape === "flame" ? "Flame graph" : "Tree map"}: arrow keys move, Enter zooms, Escape shows all`}
      aria-activedescendant={focus ? id : undefined} onKeyDown={onKeyDown} onMouseLeave={() => setHover(null)}>
      <canvas ref={canvas} style={{ width: `${width}px`, height: `${high}px` }} aria-hidden="true"
        onMouseMove={(event) => setHover(under(event))}
        onClick={(event) => {
          const hit = under(event);
          if (hit === null) return;
          setFocus(hit.node);
          onZoom(hit.node);
        }} />
      {focus && (
        <div id={id} class="p-hidden" role="treeitem" aria-level={pathTo(focus, parents).length} aria-selected="true">
          {described(focus, flame)}
        </div>
      )}
      {hover && <Tip node={hover.node} flame={flame} x={hover.x} y={hover.y} />}
    </div>
  );
}

function rectangles(zoomed: FlameNode, parents: Parents, shape: Props["shape"], width: number, height: number): [Rectangle[], number] {
  if (shape === "map") {
    const boxes = treemap(zoomed, width, height).map((tile) => ({ ...tile, title: tile.titled ? 15 : Math.min(tile.height, 18), above: tile.titled }));
    return [boxes, height];
  }
  const path = pathTo(zoomed, parents);
  const laid = icicle(path, width, LEAST);
  const boxes = laid.map((one) => ({ ...one, y: one.depth * ROW, height: ROW, title: ROW, above: one.depth < path.length - 1 }));
  return [boxes, Math.max(levels(laid) * ROW, ROW)];
}

/** A node in words: name, value, share of all, own part. */
export function described(node: FlameNode, flame: Flame): string {
  const whole = flame.root.value || 1;
  const own = node.self > 0 && node.self !== node.value ? `, itself ${valued(node.self, flame)}` : "";
  return `${node.name}: ${valued(node.value, flame)}, ${percent(node.value / whole)}${own}`;
}

export function valued(value: number, flame: Flame): string {
  return quantity(value, flame.unit);
}

function Tip({ node, flame, x, y }: { node: FlameNode; flame: Flame; x: number; y: number }) {
  const right = x > globalThis.innerWidth - 340;
  const below = y > globalThis.innerHeight - 120;
  const style = { left: right ? "auto" : `${x + 12}px`, right: right ? `${globalThis.innerWidth - x + 12}px` : "auto", top: below ? "auto" : `${y + 14}px`, bottom: below ? `${globalThis.innerHeight - y + 10}px` : "auto" };
  return (
    <div class="p-tip" style={style} aria-hidden="true">
      <b><Name text={node.name} most={600} /></b>
      <div>{valued(node.value, flame)} · {percent(node.value / (flame.root.value || 1))} of all</div>
      {node.self > 0 && <div class="p-dim">itself {valued(node.self, flame)}</div>}
    </div>
  );
}
