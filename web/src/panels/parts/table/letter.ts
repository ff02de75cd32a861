/** Measures the width of a digit in the page's font, in CSS pixels: the unit `ch`. */

let known: number | null = null;

export function letter(): number {
  if (known !== null) return known;
  const on = document.createElement("canvas").getContext("2d");
  if (on === null) return 8;
  on.font = getComputedStyle(document.body).font;
  return (known = on.measureText("0").width || 8);
}
