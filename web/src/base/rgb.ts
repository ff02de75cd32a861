/** Mixes colours 0xRRGGBB, and computes their contrast. */

export function rgb(hex: string): number {
  return Number.parseInt(hex.slice(1), 16);
}

export function css(color: number): string {
  return `#${(color & 0xffffff).toString(16).padStart(6, "0")}`;
}

/** The four bytes of an opaque pixel as one number; little-endian, as every machine with a browser is. */
export function pixel(color: number): number {
  return (0xff000000 | ((color & 0xff) << 16) | (color & 0xff00) | ((color >> 16) & 0xff)) >>> 0;
}

/** `share` of `a`, the rest `b`. */
export function mix(a: number, b: number, share: number): number {
  const channel = (shift: number): number => Math.round(((a >> shift) & 255) * share + ((b >> shift) & 255) * (1 - share)) << shift;
  return channel(16) | channel(8) | channel(0);
}

function linear(value: number): number {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}

/** Relative luminance as WCAG has it, 0 to 1. */
export function luminance(color: number): number {
  return 0.2126 * linear((color >> 16) & 255) + 0.7152 * linear((color >> 8) & 255) + 0.0722 * linear(color & 255);
}

/** Contrast ratio, 1 to 21. */
export function contrast(a: number, b: number): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** The colour, moved towards `ink` as far as is needed to be seen on `ground`. */
export function seenOn(color: number, ground: number, ink: number, least = 1.6): number {
  for (let share = 1; share > 0.3; share -= 0.1) {
    const moved = mix(color, ink, share);
    if (contrast(moved, ground) >= least) return moved;
  }
  return mix(color, ink, 0.3);
}
