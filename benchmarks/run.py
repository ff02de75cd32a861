"""Runs the benchmarks of this folder: `python benchmarks/run.py [--quick] [NAME…]`.

Each `<name>.py` here with a `run(quick)` is one; its rows go to `results/<name>.json` and all results
together into `docs/performance.md` and the pages below `docs/performance/`. Exits with 1 if a budget is missed or a
benchmark fails. The rows of a failed one are printed, and kept only by `--keep`, never in the tables.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import os
import platform
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
NOT_BENCHMARKS = {"run", "harness"}

sys.path.insert(0, str(HERE))

from _pages import table, write_pages  # noqa: E402  (scripts beside this one, not a package)
from harness import Row  # noqa: E402

sys.path.insert(1, str(HERE.parent))

from tests.support.optional_dependencies import missing  # noqa: E402


def machine(piece: str | None = None) -> dict[str, Any]:
    """Say what the figures were measured on, without names that identify the machine; `piece`: what the benchmark needs."""
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
        **({"gpu": gpu()} if piece == "gpu" else {}),
    }


def gpu() -> str:
    """The first device, as the driver calls it, and the CUDA that the driver speaks."""
    driver, device, name, version = (
        ctypes.CDLL("libcuda.so.1"),
        ctypes.c_int(),
        ctypes.create_string_buffer(100),
        ctypes.c_int(),
    )
    driver.cuInit(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDriverGetVersion(ctypes.byref(version))
    return f"{name.value.decode()}, driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def names() -> list[str]:
    """List the benchmarks of this folder."""
    return sorted(
        path.stem
        for path in HERE.glob("*.py")
        if path.stem not in NOT_BENCHMARKS and not path.stem.startswith("_")
    )


def record(row: Row) -> dict[str, Any]:
    """Turn a row into what the result file holds."""
    return {**asdict(row), "ratio": row.ratio, "ok": row.ok}


def lacking(module: Any) -> str | None:
    """Say why a benchmark cannot run here; None where it can. Its `NEEDS` names a piece (tests/support/optional_dependencies.py)."""
    piece = getattr(module, "NEEDS", None)
    reason = missing(piece) if piece else None
    return reason or (module.lacks() if hasattr(module, "lacks") else None)


def measured(module: Any, quick: bool) -> dict[str, Any]:
    """Run a benchmark and show its rows; where it fails, those that it had by then, and `stopped` says why."""
    piece = getattr(module, "NEEDS", None)
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {
        "about": (module.__doc__ or "").partition("\n")[0],
        "machine": machine(piece),
        "quick": quick,
        "rows": rows,
    }
    started = time.perf_counter()
    try:
        for row in module.run(quick):
            rows.append(record(row))  # noqa: PERF401  (one by one: those before a failure stay)
    except (
        Exception,
        KeyboardInterrupt,
    ) as error:  # a GPU is lent for minutes: what was measured until then counts
        traceback.print_exc()
        result["stopped"] = f"{type(error).__name__}: {error}"
    print(table(rows), f"\n({time.perf_counter() - started:.0f} s)\n", sep="\n", flush=True)
    return result


def write_page() -> None:
    """Write `docs/performance.md` and the pages below it from the result files."""
    needs = {name: getattr(importlib.import_module(name), "NEEDS", None) for name in names()}
    write_pages(HERE, PAGE, {name: piece for name, piece in needs.items() if piece})


def main() -> int:
    """Run the chosen benchmarks, write results and page, and print the missed budgets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(names()) or 'none yet'}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, for a look; results are printed, not kept"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="FOLDER",
        help="put results here, also of what failed half-way, and leave the page alone",
    )
    parser.add_argument(
        "--page", action="store_true", help="measure nothing, write the page from what is in results"
    )
    options = parser.parse_args()
    if options.page:
        write_page()
        return 0
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names())}")
    missed, failed = [], []
    folder = options.keep or HERE / "results"
    for name in options.names or names():
        try:
            module = importlib.import_module(name)
            about = (module.__doc__ or "").partition("\n")[0]
            print(f"{name}: {about}", flush=True)
            reason = lacking(module)
            if reason is not None:
                print(f"not run, {reason}\n", flush=True)
                continue
            result = measured(module, options.quick)
        except Exception:
            traceback.print_exc()
            failed.append(name)
            continue
        failed += [name] * ("stopped" in result)
        missed += [f"{name}: {row['what']}" for row in result["rows"] if row["ok"] is False]
        if options.keep or not (options.quick or "stopped" in result):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_text(
                json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
        if result.get("stopped", "").startswith("KeyboardInterrupt"):
            break
    if not (options.quick or options.keep):
        write_page()
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    for line in missed:
        print(f"budget missed: {line}", file=sys.stderr)
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
