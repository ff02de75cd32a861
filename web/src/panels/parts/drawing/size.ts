/** How large an element is, kept up to date. */
import { useEffect, useState } from "preact/hooks";

/** Return width and height in CSS pixels; what is given until it is known. */
export function useSize(node: { current: HTMLElement | null }, first: [number, number] = [800, 200]): [number, number] {
  const [size, setSize] = useState(first);
  useEffect(() => {
    const element = node.current;
    if (element === null) return;
    const measure = () => {
      if (element.clientWidth > 0) setSize((old) => (old[0] === element.clientWidth && old[1] === element.clientHeight ? old : [element.clientWidth, element.clientHeight]));
    };
    measure();
    if (typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}
