"""Cost of an annotation, beside PyPI nvtx, other tools and the cheapest C extension (R), in one run.

R is `with` on a prebuilt context manager of a C extension that does nothing (floor.c). Three modes, each in its own
process: no tool, our agent recording, NVTX_DISABLE. Figures are CPU time per operation with the loop subtracted. Other
tools are timed beside R, each in its own process, where they are installed (_peers.py).
"""

from __future__ import annotations

import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from _annotate_cases import ASYNC, FLOORS, MAIN, MORE, Case, candidate, names, runner
from _floor import LOOP, STATEMENTS, R, build_floor, floor_names, loop
from _matrix import matrix
from _peers import PEERS, Peer, find
from _spool import recording
from harness import Row, interleave

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src"
AGENT = SOURCE / "warplens" / "_lib" / "libwarplens_agent.so"
GROUPS = {"main": MAIN, "more": MORE, "async": ASYNC}
CASES = {case.what: case for case in (*MAIN, *MORE, *ASYNC)}
BUDGETS = {
    ("no tool", "with annotate('x')"): 1.5,
    ("attached", "with annotate('x')"): 1.8,
    ("no tool", "@annotate f()"): 0.35,
    ("attached", "@annotate f()"): 0.6,
}
SUSTAINED = "sustained"
TOUCH = "page touch"
RECORD = 40  # bytes of a range in the spool


def run(quick: bool) -> list[Row]:
    """All modes, the other tools, and the import."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as folder:
        place = Path(folder)
        floor = build_floor(place, sys.executable)
        rows = []
        for mode in ("no tool", "attached", "disabled"):
            if mode == "attached" and not AGENT.exists():
                print(
                    f"annotate: {AGENT} is missing (build and install the native part); leaving out 'attached'"
                )
                continue
            for group in GROUPS:
                samples = _measure_apart(mode, group, quick, floor, place)
                rows += _rows(mode, group, samples)
        rows += _peer_rows(quick, place)
    return [*rows, _import_row(quick)]


def page(rows: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The part of the rows that reads better as a table of libraries and modes, and the others."""
    return matrix(rows, ("warplens", "nvtx"), ("no tool", "attached", "disabled"))


def _environment(attached: bool, folder: Path) -> dict[str, str]:
    hidden = ("NVTX_INJECTION64_PATH", "NVTX_DISABLE", "WARPLENS_SPOOL", "NVTX_TOOL_LOG")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    kept["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(HERE)])
    return kept | (recording(Path(tempfile.mkdtemp(dir=folder)) / "spool") if attached else {})


def _measure_apart(mode: str, group: str, quick: bool, floor: Path, folder: Path) -> dict[str, list[float]]:
    environment = _environment(mode == "attached", folder)
    if mode == "disabled":
        environment["NVTX_DISABLE"] = "1"
    command = [
        sys.executable,
        str(HERE / "annotate.py"),
        str(floor),
        mode,
        group,
        "quick" if quick else "full",
    ]
    return _samples(command, environment)


def _samples(
    command: list[str], environment: dict[str, str], stderr: int | None = None
) -> dict[str, list[float]]:
    done = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, stderr=stderr, text=True
    )
    measured: dict[str, list[float]] = json.loads(done.stdout)
    spool = environment.get("WARPLENS_SPOOL")
    for file in Path(spool).iterdir() if spool else ():
        file.unlink()  # hundreds of MB each
    return measured


def _measure_here(floor: str, mode: str, group: str, quick: bool) -> dict[str, list[float]]:
    plain = floor_names(floor)
    candidates = {name: loop(statement, plain) for name, statement in STATEMENTS.items()}
    run_coroutine = runner()
    missing = []
    for label, library in _libraries():
        if label == "warplens" and library.attached() != (mode == "attached"):
            raise SystemExit(f"annotate: mode {mode!r}, but attached() is {library.attached()}")
        known = names(library)
        cases: Iterable[Case] = GROUPS[group]
        if group == "async" and label == "warplens":
            candidates |= {case.what: candidate(case, known, run_coroutine) for case in FLOORS}
        for case in cases:
            if case.only in ("", label):
                function = candidate(case, known, run_coroutine)
                try:
                    function(1)
                except (NameError, AttributeError) as error:
                    missing.append(f"{label} {case.what} ({error})")
                else:
                    candidates[f"{label} {case.what}"] = function
    if missing:
        print(f"annotate ({mode}): not there: {'; '.join(missing)}", file=sys.stderr)
    # Blocks much smaller than the windows in which a spool's pages are provided (128 KiB): few rounds hold such a moment, and
    # medians pass over them.
    rounds = 41 if quick else 205 if group == "main" else 63
    timings = interleave(candidates, calls=500 if quick else 1000, rounds=rounds)
    samples = {name: list(timing.rounds) for name, timing in timings.items()}
    if mode == "attached" and group == "main":
        # What the kernel takes for the pages is part of long blocks.
        chosen = (LOOP, R, "plain f()", "warplens with annotate('x')", "warplens @annotate f()")
        blocks = interleave(
            {name: candidates[name] for name in chosen},
            calls=50_000 if quick else 300_000,
            rounds=3 if quick else 7,
        )
        samples |= {f"{SUSTAINED} {name}": list(timing.rounds) for name, timing in blocks.items()}
        samples[TOUCH] = [_touch_pages(50_000 if quick else 300_000)]
    return samples


def _touch_pages(records: int) -> float:
    """CPU ns per record that the kernel takes to provide the pages of a mapped file of `records` records, reserved before."""
    size = records * RECORD // mmap.PAGESIZE * mmap.PAGESIZE
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)
        with mmap.mmap(file.fileno(), size) as pages:
            before = time.thread_time_ns()
            for offset in range(0, size, mmap.PAGESIZE):
                pages[offset] = 1
            return (time.thread_time_ns() - before) / records


def _libraries() -> list[tuple[str, Any]]:
    import warplens.nvtx

    try:
        import nvtx
    except ImportError:
        return [("warplens", warplens.nvtx)]
    return [("warplens", warplens.nvtx), ("nvtx", nvtx)]


def _net(samples: dict[str, list[float]], name: str, less: str) -> float:
    return statistics.median(one - other for one, other in zip(samples[name], samples[less], strict=True))


def _rows(mode: str, group: str, samples: dict[str, list[float]]) -> list[Row]:
    r = _net(samples, R, LOOP)
    rows = []
    if group == "main":
        rows += [
            Row(f"floor ({mode}): {name}", _net(samples, name, LOOP), "ns", "R", r)
            for name in STATEMENTS
            if name != LOOP
        ]
    for name in samples:
        label, _, what = name.partition(" ")
        if label not in ("warplens", "nvtx"):
            continue
        less = CASES[what].less
        budget = BUDGETS.get((mode, what)) if label == "warplens" else None
        note = "" if less == LOOP else f"over {_plainly(less)}"
        rows.append(
            Row(f"{label} ({mode}): {what}", _net(samples, name, less), "ns", "R", r, budget, note=note)
        )
    return rows + (_sustained_rows(samples) if TOUCH in samples else [])


def _plainly(less: str) -> str:
    return {"plain f()": "a plain call", "await plain f()": "a plain await"}.get(
        less, f"the {less}".replace("the plain", "a plain")
    )


def _peer_rows(quick: bool, folder: Path) -> list[Row]:
    """The other tools that are installed; says which are not."""
    rows, missing = [], set()
    floors: dict[str, Path] = {}
    for peer in PEERS:
        found = find(peer)
        if found is None:
            missing.add(peer.name)
            continue
        python, marker = found
        if python not in floors:
            place = Path(tempfile.mkdtemp(dir=folder))
            floors[python] = build_floor(place, python)
        for attached in (False, True) if peer.tool else (False,):
            mode = (" (attached)" if attached else " (no tool)") if peer.tool else ""
            command = [
                python,
                str(HERE / "_peers.py"),
                peer.name,
                str(floors[python]),
                "quick" if quick else "full",
                str(marker),
            ]
            try:
                samples = _samples(command, _environment(attached, folder), subprocess.PIPE)
            except subprocess.CalledProcessError as error:
                missing.add(f"{peer.name} ({error.stderr.strip().rpartition(chr(10))[2] or error})")
                continue
            rows += _rows_of(peer, mode, samples)
    if missing:
        print(
            f"annotate: not measured, for it is not installed or fails: {', '.join(sorted(missing))} (make peers)",
            flush=True,
        )
    return rows


def _rows_of(peer: Peer, mode: str, samples: dict[str, list[float]]) -> list[Row]:
    r = _net(samples, R, LOOP)
    rows = []
    for what in peer.statements:
        less = "plain f()" if what.startswith(("plain f()", "@")) else LOOP
        note = "over a plain call" if less != LOOP else ""
        rows.append(
            Row(
                f"{peer.name.partition('-')[0]}{mode}: {what}",
                _net(samples, what, less),
                "ns",
                "R",
                r,
                note=note,
            )
        )
    return rows


def _sustained_rows(samples: dict[str, list[float]]) -> list[Row]:
    """Means over long blocks: what a program that records without a pause pays, growth of the spool included.

    Most of it is the kernel providing zeroed pages, which no recorder that keeps everything can avoid: the floor is R and
    the first touch of as many bytes of a reserved, mapped file.
    """

    def mean(name: str, less: str) -> float:
        return statistics.fmean(samples[f"{SUSTAINED} {name}"]) - statistics.fmean(
            samples[f"{SUSTAINED} {less}"]
        )

    floor = mean("R", "loop") + samples[TOUCH][0]
    rows = []
    for what, less in (("with annotate('x')", "loop"), ("@annotate f()", "plain f()")):
        note = "mean of long blocks" + ("; over a plain call" if less != "loop" else "")
        rows.append(
            Row(
                f"warplens (attached, sustained): {what}",
                mean(f"warplens {what}", less),
                "ns",
                "R + page touch",
                floor,
                note=note,
            )
        )
    return rows


def _import_row(quick: bool) -> Row:
    """Wall time of `import warplens.nvtx` over an interpreter that imports nothing."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    programs = {"pass": "pass", "import": "import warplens.nvtx"}

    def process(code: str) -> Callable[[int], object]:
        return lambda count: [
            subprocess.run([sys.executable, "-c", code], env=environment, check=True) for _ in range(count)
        ]

    candidates = {name: process(code) for name, code in programs.items()}
    timings = interleave(candidates, calls=1, rounds=9 if quick else 25, clock=time.perf_counter_ns)
    added = (timings["import"].median - timings["pass"].median) / 1e6
    return Row("import warplens.nvtx", added, "ms", budget=20, budget_on="value", note="over python -c pass")


def main() -> None:
    """One group of one mode, in the process that run() started for it."""
    floor, mode, group, how = sys.argv[1:]
    json.dump(_measure_here(floor, mode, group, how == "quick"), sys.stdout)


if __name__ == "__main__":
    main()
