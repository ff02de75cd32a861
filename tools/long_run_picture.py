"""Draws the results of benchmarks/long_run.py: `long_run_picture.py [RESULT.json [OUT.svg]]`.

Look at what it drew: `chromium --headless --screenshot=x.png --window-size=860,400 docs/images/long-run.svg`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 860, 400
LEFT, TOP, RIGHT, BOTTOM = 56, 52, 190, 48  # margins; the names of the lines stand on the right
COLORS = {"recorded": "#1f6feb", "launcher": "#b35900", "plain": "#57606a", "promised": "#cf222e"}
NAMES = {
    "recorded": "program, recorded",
    "launcher": "launcher",
    "plain": "program, plain",
    "promised": "promised at most",
}
_POINT = re.compile(r"after ([\d,]+) s: (plain|recorded|launcher)")
_APART = 16  # px between two names


def lines(result: dict[str, object]) -> dict[str, list[tuple[float, float]]]:
    """Return the points (minutes, MiB) of each line; of `promised` from the budget of the growth."""
    points: dict[str, list[tuple[float, float]]] = {"plain": [], "recorded": [], "launcher": []}
    budget = 0.0
    rows = result["rows"]
    assert isinstance(rows, list)
    for row in rows:
        if match := _POINT.fullmatch(row["what"]):
            points[match[2]].append((float(match[1].replace(",", "")) / 60, row["value"]))
        elif "beyond the plain run" in row["what"]:
            budget = row["budget"]
    most = max(value for _, value in points["plain"])
    points["promised"] = [(minute, most + budget) for minute, _ in (points["plain"][0], points["plain"][-1])]
    return points


def drawn(points: dict[str, list[tuple[float, float]]]) -> str:
    """Return the picture."""
    longest = max(minute for line in points.values() for minute, _ in line)
    highest = _round_up(max(value for line in points.values() for _, value in line))
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(minute: float, value: float) -> tuple[float, float]:
        return LEFT + across * minute / longest, TOP + down * (1 - value / highest)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" role="img">',
        "<title>Resident size over time, of a program that is recorded, the same program alone, and the launcher</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="15" font-weight="bold" fill="#1f2328">Resident size, MiB</text>',
    ]
    for value in range(0, int(highest) + 1, 10):
        y = place(0, value)[1]
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + across}" y2="{y:.1f}" stroke="#d8dee4"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#57606a">{value}</text>')
    every = max(1, round(longest / 10))
    for minute in range(0, int(longest + 0.5) + 1, every):
        x = place(min(minute, longest), 0)[0]
        parts.append(
            f'<text x="{x:.1f}" y="{TOP + down + 20}" text-anchor="middle" fill="#57606a">{minute}</text>'
        )
    parts.append(
        f'<text x="{LEFT + across / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#57606a">minutes</text>'
    )
    heights = _apart({name: place(*line[-1])[1] for name, line in points.items()})
    for name, line in points.items():
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        dashes = ' stroke-dasharray="6 5"' if name == "promised" else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{COLORS[name]}" stroke-width="2"{dashes}/>'
        )
        text = f"{NAMES[name]}: {max(value for _, value in line):.0f}"
        parts.append(
            f'<text x="{LEFT + across + 10}" y="{heights[name] + 4:.1f}" fill="{COLORS[name]}">{escape(text)}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _round_up(value: float) -> float:
    return (int(value) // 10 + 1) * 10.0


def _apart(heights: dict[str, float]) -> dict[str, float]:
    """Move names that lie on each other apart, upwards from the lowest."""
    moved: dict[str, float] = {}
    limit = float("inf")
    for name, y in sorted(heights.items(), key=lambda item: -item[1]):
        moved[name] = limit = min(y, limit - _APART)
    return moved


def main(words: Sequence[str]) -> None:
    """Draw it."""
    source = Path(words[0]) if words else ROOT / "benchmarks" / "results" / "long_run.json"
    target = Path(words[1]) if len(words) > 1 else ROOT / "docs" / "images" / "long-run.svg"
    target.write_text(drawn(lines(json.loads(source.read_text(encoding="utf-8")))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
