"""Runs the benchmarks of this folder: `python benchmarks/run.py [--quick] [NAME…]`.

Each `<name>.py` here with a `run(quick)` is one; its rows go to `results/<name>.json` and all results together into the
table of `docs/performance.md`. Exits with 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
NOT_BENCHMARKS = {"run", "harness"}

sys.path.insert(0, str(HERE))

from harness import Row  # noqa: E402  (benchmarks are scripts beside this one, not a package)

sys.path.insert(1, str(HERE.parent))

from tests.pieces import missing  # noqa: E402


def machine() -> dict[str, Any]:
    """Say what the figures were measured on, without names that identify the machine."""
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def names() -> list[str]:
    """List the benchmarks of this folder."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_BENCHMARKS and not path.stem.startswith("_"))


def record(row: Row) -> dict[str, Any]:
    """Turn a row into what the result file holds."""
    return {**asdict(row), "ratio": row.ratio, "ok": row.ok}


def figure(value: float | None) -> str:
    """Show a number with three significant digits and thousands separated."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def budget(row: dict[str, Any]) -> str:
    """Show a row's budget and whether it is kept."""
    if row["budget"] is None:
        return ""
    sign = "≥" if row["budget_on"] == "at least" else "≤"
    unit = " ×" if row["budget_on"] == "ratio" else ""
    return f"{sign} {figure(row['budget'])}{unit} {'✓' if row['ok'] else '✗ **missed**'}"


def table(rows: list[dict[str, Any]]) -> str:
    """Write rows as a Markdown table."""
    lines = ["| what | measured | against | ratio | budget | |", "|---|--:|---|--:|---|---|"]
    for row in rows:
        peer = f"{row['peer']} {figure(row['peer_value'])}".strip() if row["peer"] else ""
        cells = (row["what"], f"{figure(row['value'])} {row['unit']}", peer, figure(row["ratio"]), budget(row), row["note"])
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def lacking(module: Any) -> str | None:
    """Say why a benchmark cannot run here; None where it can. Its `NEEDS` names a piece of tests/pieces.py, its `lacks` may know more."""
    piece = getattr(module, "NEEDS", None)
    reason = missing(piece) if piece else None
    return reason or (module.lacks() if hasattr(module, "lacks") else None)


def write_page() -> None:
    """Write `docs/performance.md` from the result files."""
    parts = [
        "# Performance",
        "Written by `make bench`; every figure comes from a file in `benchmarks/`. What counts is the ratio: both sides of it are measured"
        " in one run, in turn. A budget is a promise: `make bench` fails when one is missed.",
    ]
    for path in sorted((HERE / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        facts = result["machine"]
        mode = ", quick run" if result["quick"] else ""
        parts.append(f"## {path.stem}\n\n{result['about']}")
        parts.append(f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}, CPython {facts['python']}{mode}.")
        rows = result["rows"]
        page = getattr(importlib.import_module(path.stem), "page", None)
        if page is not None:  # a benchmark may have a better form for some of its rows
            first, rows = page(rows)
            parts += [first] if first else []
        parts += [table(rows)] if rows else []
    for name in names():
        piece = getattr(importlib.import_module(name), "NEEDS", None)
        if piece and not (HERE / "results" / f"{name}.json").exists():
            about = (importlib.import_module(name).__doc__ or "").partition("\n")[0]
            parts.append(f"## {name}\n\n{about}\n\nNot yet run on a {piece.upper()}.")
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> int:
    """Run what is asked for, write results and page, and say which budgets were missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(names()) or 'none yet'}")
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look; results are printed, not kept")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names())}")
    missed = []
    for name in options.names or names():
        module = importlib.import_module(name)
        about = (module.__doc__ or "").partition("\n")[0]
        print(f"{name}: {about}", flush=True)
        reason = lacking(module)
        if reason is not None:
            print(f"not run, {reason}\n", flush=True)
            continue
        started = time.perf_counter()
        rows = [record(row) for row in module.run(options.quick)]
        print(table(rows), f"\n({time.perf_counter() - started:.0f} s)\n", sep="\n", flush=True)
        missed += [f"{name}: {row['what']}" for row in rows if row["ok"] is False]
        if not options.quick:
            result = {"about": about, "machine": machine(), "quick": options.quick, "rows": rows}
            out = HERE / "results" / f"{name}.json"
            out.parent.mkdir(exist_ok=True)
            out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if not options.quick:
        write_page()
    for line in missed:
        print(f"budget missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
