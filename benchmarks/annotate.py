"""What annotating costs, against PyPI nvtx and against the least a C extension can do (R), in one interleaved run.

R is `with` on a prebuilt context manager of a C extension that does nothing (floor.c). Three modes, each in its own
process: no tool, our agent recording, NVTX_DISABLE. Figures are CPU time per operation with the loop subtracted.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _spool import recording
from harness import Row, interleave

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
AGENT = SOURCE / "warpline" / "_lib" / "libwarpline_agent.so"

# name -> (statement, unrolled ops are one). `n` is the module under test.
STATEMENTS = {
    "with annotate('x')": "with n.annotate('x'): pass",
    "with annotate(f'{i}')": "with n.annotate(f'item {i & 255}'): pass",
    "with annotate(all arguments)": "with n.annotate('x', color='red', domain='bench', category='cat', payload=3): pass",
    "with prebuilt annotate": "with prebuilt: pass",
    "@annotate f()": "f()",
    "push_range('x'); pop_range()": "push('x'); pop()",
    "mark('x')": "mark('x')",
    "start_range('x'); end_range()": "end(start('x'))",
    "domain.push_range(attributes); pop_range()": "dpush(attributes); dpop()",
    "domain.mark(attributes)": "dmark(attributes)",
}
FLOORS = {
    "loop": "pass",
    "R": "with null: pass",
    "with Null()": "with Null(): pass",
    "plain f()": "g()",
    "C noop()": "noop()",
}


SUSTAINED = "sustained"
TOUCH = "page touch"
RECORD = 40  # bytes of a range in the spool


def run(quick: bool) -> list[Row]:
    """All modes and the import."""
    with tempfile.TemporaryDirectory(prefix="warpline-bench-") as folder:
        floor = _build_floor(Path(folder))
        rows = []
        for mode in ("no tool", "attached", "disabled"):
            if mode == "attached" and not AGENT.exists():
                print(f"annotate: {AGENT} is missing (build and install the native part); leaving out 'attached'")
                continue
            rows += _rows(mode, _measure_apart(mode, quick, floor, Path(folder)))
    return [*rows, _import_row(quick)]


def _build_floor(folder: Path) -> Path:
    target = folder / f"floor{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_path("include")
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", f"-I{include}", str(HERE / "floor.c"), "-o", str(target)], check=True)
    return target


def _measure_apart(mode: str, quick: bool, floor: Path, folder: Path) -> dict[str, Any]:
    hidden = ("NVTX_INJECTION64_PATH", "NVTX_DISABLE", "WARPLINE_SPOOL", "NVTX_TOOL_LOG")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(HERE)])
    if mode == "attached":
        environment |= recording(folder / "spool")
    if mode == "disabled":
        environment["NVTX_DISABLE"] = "1"
    command = [sys.executable, str(HERE / "annotate.py"), str(floor), mode, "quick" if quick else "full"]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _measure_here(floor: str, mode: str, quick: bool) -> dict[str, list[float]]:
    specification = importlib.util.spec_from_file_location("floor", floor)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    plain: dict[str, Any] = {"null": module.Null(), "Null": module.Null, "noop": module.noop}
    exec("def g(): pass", plain)
    candidates = {name: _loop(statement, plain) for name, statement in FLOORS.items()}
    for label, library in _libraries():
        if label == "warpline" and library.attached() != (mode == "attached"):
            raise SystemExit(f"annotate: mode {mode!r}, but attached() is {library.attached()}")
        names = _names(library)
        candidates |= {f"{label} {what}": _loop(statement, names) for what, statement in STATEMENTS.items()}
    timings = interleave(candidates, calls=2000 if quick else 5000, rounds=9 if quick else 41)
    samples = {name: list(timing.rounds) for name, timing in timings.items()}
    if mode == "attached":
        # Medians pass over the rounds in which the spool grows and its pages are first touched; long blocks do not.
        chosen = ("loop", "R", "plain f()", "warpline with annotate('x')", "warpline @annotate f()")
        blocks = interleave({name: candidates[name] for name in chosen}, calls=50_000 if quick else 300_000, rounds=3 if quick else 7)
        samples |= {f"{SUSTAINED} {name}": list(timing.rounds) for name, timing in blocks.items()}
        samples[TOUCH] = [_touch_pages(50_000 if quick else 300_000)]
    return samples


def _touch_pages(records: int) -> float:
    """CPU ns per record that the kernel takes to provide the pages of a mapped file of so many records, reserved before."""
    size = records * RECORD // mmap.PAGESIZE * mmap.PAGESIZE
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)
        with mmap.mmap(file.fileno(), size) as pages:
            before = time.thread_time_ns()
            for offset in range(0, size, mmap.PAGESIZE):
                pages[offset] = 1
            return (time.thread_time_ns() - before) / records


def _libraries() -> list[tuple[str, Any]]:
    import warpline.nvtx

    try:
        import nvtx
    except ImportError:
        return [("warpline", warpline.nvtx)]
    return [("warpline", warpline.nvtx), ("nvtx", nvtx)]


def _names(library: Any) -> dict[str, Any]:
    domain = library.get_domain("bench")
    names = {"n": library, "prebuilt": library.annotate("x"), "attributes": domain.get_event_attributes(message="x")}
    names |= {"push": library.push_range, "pop": library.pop_range, "mark": library.mark}
    names |= {"start": library.start_range, "end": library.end_range}
    names |= {"dpush": domain.push_range, "dpop": domain.pop_range, "dmark": domain.mark}
    exec("def plain(): pass", names)
    names["f"] = library.annotate("x")(names["plain"])
    return names


def _loop(statement: str, names: dict[str, Any]) -> Callable[[int], object]:
    namespace: dict[str, Any] = {}
    exec(f"def loop(count):\n for i in range(count):\n  {statement}", names, namespace)
    function: Callable[[int], object] = namespace["loop"]
    return function


def _rows(mode: str, samples: dict[str, list[float]]) -> list[Row]:
    rounds = len(samples["R"])
    loop = samples["loop"]

    def net(name: str, less: str = "loop") -> float:
        return statistics.median(samples[name][i] - samples[less][i] for i in range(rounds))

    r = statistics.median(samples["R"][i] - loop[i] for i in range(rounds))
    rows = [Row(f"floor ({mode}): {name}", net(name), "ns", "R", r) for name in FLOORS if name != "loop"]
    for name in samples:
        label, _, what = name.partition(" ")
        if label not in ("warpline", "nvtx"):
            continue
        less = "plain f()" if what == "@annotate f()" else "loop"
        budget = BUDGETS.get((mode, what)) if label == "warpline" else None
        note = "over a plain call" if less != "loop" else ""
        rows.append(Row(f"{label} ({mode}): {what}", net(name, less), "ns", "R", r, budget, note=note))
    return rows + (_sustained_rows(samples) if mode == "attached" else [])


def _sustained_rows(samples: dict[str, list[float]]) -> list[Row]:
    """Means over long blocks: what a program that records without a pause pays, growth of the spool included.

    Most of it is the kernel providing zeroed pages, which no recorder that keeps everything can avoid: the floor is R and
    the first touch of as many bytes of a reserved, mapped file.
    """

    def mean(name: str, less: str) -> float:
        return statistics.fmean(samples[f"{SUSTAINED} {name}"]) - statistics.fmean(samples[f"{SUSTAINED} {less}"])

    floor = mean("R", "loop") + samples[TOUCH][0]
    rows = []
    for what, less in (("with annotate('x')", "loop"), ("@annotate f()", "plain f()")):
        note = "mean of long blocks" + ("; over a plain call" if less != "loop" else "")
        rows.append(
            Row(f"warpline (attached, sustained): {what}", mean(f"warpline {what}", less), "ns", "R + page touch", floor, note=note)
        )
    return rows


BUDGETS = {
    ("no tool", "with annotate('x')"): 1.5,
    ("attached", "with annotate('x')"): 1.8,
    ("no tool", "@annotate f()"): 0.35,
    ("attached", "@annotate f()"): 0.6,
}


def _import_row(quick: bool) -> Row:
    """Wall time of `import warpline.nvtx` over an interpreter that imports nothing."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    programs = {"pass": "pass", "import": "import warpline.nvtx"}

    def process(code: str) -> Callable[[int], object]:
        return lambda count: [subprocess.run([sys.executable, "-c", code], env=environment, check=True) for _ in range(count)]

    candidates = {name: process(code) for name, code in programs.items()}
    timings = interleave(candidates, calls=1, rounds=9 if quick else 25, clock=time.perf_counter_ns)
    added = (timings["import"].median - timings["pass"].median) / 1e6
    return Row("import warpline.nvtx", added, "ms", budget=20, budget_on="value", note="over python -c pass")


def main() -> None:
    """One mode, in the process that run() started for it."""
    floor, mode, how = sys.argv[1:]
    json.dump(_measure_here(floor, mode, how == "quick"), sys.stdout)


if __name__ == "__main__":
    main()
