"""Imports and queries a PyTorch profiler trace, beside Holistic Trace Analysis (HTA) on the same file.

The trace is a real one where it is here, else one of its shape, 1, 5 and 20 times as long; each tool begins in a separate process with
the file as it is. Answers are compared: both must say the same. HTA comes from `tools/peers.py bench-hta`.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import _kineto_traces as traces
from harness import Row

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 1e6  # events per second and core, inflating apart
BUDGET_RSS = 1 << 30
FASTER, SMALLER = (
    20,
    10,
)  # than HTA, where the trace is long, and very long: what both need for themselves counts less then
LONG, VERY_LONG = 5, 20
_JSON_MOST = 512 << 20  # bytes: as dictionaries a trace takes six times as much memory
QUESTIONS = ("temporal_breakdown", "kernel_breakdown", "comm_comp_overlap", "queue_length")

_HTA = """
import json, os, resource, sys, time, warnings
warnings.simplefilter("ignore")
from hta.trace_analysis import TraceAnalysis
begin, cpu = time.perf_counter(), time.process_time()
found = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=os.path.dirname(sys.argv[1]), include_last_profiler_step=True)
loaded = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
asked, told = {}, {}
def ask(name, work):
    begin = time.process_time()
    told[name] = work()
    asked[name] = time.process_time() - begin
ask("temporal_breakdown", lambda: found.get_temporal_breakdown(visualize=False))
ask("kernel_breakdown", lambda: found.get_gpu_kernel_breakdown(visualize=False)[0])
ask("comm_comp_overlap", lambda: found.get_comm_comp_overlap(visualize=False))
ask("queue_length", lambda: found.get_queue_length_summary())
rows = told["temporal_breakdown"].iloc[0]
answers = {
    "idle": int(rows["idle_time(us)"]),
    "compute": int(rows["compute_time(us)"]),
    "communication": int(told["kernel_breakdown"].set_index("kernel_type")["sum"].get("COMMUNICATION", 0)),
    "overlap": float(told["comm_comp_overlap"].iloc[0]["comp_comm_overlap_pctg"]),
    "queues": sorted(int(value) for value in told["queue_length"]["queue_length"]["max"]),
}
print(json.dumps({**loaded, "asked": asked, "answers": answers, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def run(quick: bool) -> list[Row]:
    """Measure the trace as it is, and 5 and 20 times as long unless `quick`."""
    hta = _hta()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        for times in (1,) if quick else (1, LONG, VERY_LONG):
            folder = Path(name) / str(times)
            folder.mkdir()
            path = folder / "trace.json"
            # A process begins with its parent's peak memory: this one must stay small.
            events = int(_measured([sys.executable, traces.__file__, str(path), str(times)])["events"])
            ours = _ours(path)
            rows += _alone(f"×{times} ({events:,} events)", events, ours, long=times >= LONG)
            if hta is not None:
                theirs = _measured([hta, "-c", _HTA, str(path)])
                rows += _beside(f"×{times}", ours, theirs, times)
            if times == 1:
                rows.append(_packed(path, events, ours))
            shutil.rmtree(folder)
    return rows


def _alone(label: str, events: int, ours: dict[str, Any], *, long: bool) -> list[Row]:
    note, budget = traces.source(), BUDGET if long else None  # a short one is mostly what each import costs
    return [
        Row(
            f"{label}: imported per second and core",
            events / ours["cpu"],
            "events/s",
            budget=budget,
            budget_on="at least",
            note=note,
        ),
        Row(
            f"{label}: peak memory", ours["rss"] / 2**20, "MiB", budget=BUDGET_RSS / 2**20, budget_on="value"
        ),
        Row(f"{label}: read alone, without writing tables", ours["read"] / events * 1e9, "ns/event"),
        *_beside_json(label, events, ours),
    ]


def _beside_json(label: str, events: int, ours: dict[str, Any]) -> list[Row]:
    """Compare with the floor of every reader in Python: its `json`, which has the same text as dictionaries then."""
    if not ours["json"]:  # a long trace as dictionaries does not fit into this machine's memory
        return []
    floor = ours["json"] / events * 1e9
    return [
        Row(
            f"{label}: imported, CPU",
            ours["cpu"] / events * 1e9,
            "ns/event",
            "Python's json, tables apart",
            floor,
            0.7,
        )
    ]


def _beside(label: str, ours: dict[str, Any], theirs: dict[str, Any], times: int) -> list[Row]:
    same = (
        "the same answers"
        if ours["answers"] == theirs["answers"]
        else f"**{ours['answers']} is not {theirs['answers']}**"
    )
    faster, smaller = 1 / FASTER if times >= LONG else None, 1 / SMALLER if times >= VERY_LONG else None
    rows = [
        Row(f"{label}: load, CPU", ours["cpu"], "s", "HTA", theirs["cpu"], faster, note=same),
        Row(f"{label}: load, wall", ours["wall"], "s", "HTA", theirs["wall"]),
        Row(f"{label}: peak memory", ours["rss"] / 2**20, "MiB", "HTA", theirs["rss"] / 2**20, smaller),
    ]
    return rows + [
        Row(f"{label}: {name}", ours["asked"][name], "s", "HTA", theirs["asked"][name]) for name in QUESTIONS
    ]


def _packed(path: Path, events: int, plain: dict[str, Any]) -> Row:
    """Measure what unpacking costs."""
    packed = path.with_name("packed.json.gz")
    with open(path, "rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    cpu = _measured([sys.executable, __file__, str(packed), "import"])["cpu"]
    return Row(
        "×1: what gzip adds, CPU",
        (cpu - plain["cpu"]) / events * 1e9,
        "ns/event",
        "all without it",
        plain["cpu"] / events * 1e9,
    )


def _ours(path: Path) -> dict[str, Any]:
    read = _measured([sys.executable, __file__, str(path), "read"])
    made = _measured([sys.executable, __file__, str(path), "import"])
    fits = path.stat().st_size < _JSON_MOST
    floor = _measured([sys.executable, __file__, str(path), "json"])["json"] if fits else 0.0
    asked = _measured([sys.executable, __file__, str(path), "ask"])
    return {**made, **asked, "read": read["read"], "json": floor}


def _measured(command: list[Any]) -> dict[str, Any]:
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(output.splitlines()[-1]))


def _hta() -> Path | None:
    """Return the Python that has HTA: in build/peers, or in an environment that WARPLENS_PEERS names."""
    folders = [
        ROOT / "build" / "peers",
        *map(Path, filter(None, os.environ.get("WARPLENS_PEERS", "").split(os.pathsep))),
    ]
    return next(
        (
            folder / "bin" / "python"
            for folder in folders
            for _ in folder.glob("lib/python*/site-packages/hta")
        ),
        None,
    )


def main() -> None:
    """Read, import or ask the file named on the command line, and print what it took."""
    source, what = Path(sys.argv[1]), sys.argv[2]
    report = source.with_suffix(".warplens")
    print(json.dumps({"read": _read, "json": _json, "import": _import, "ask": _ask}[what](source, report)))


def _read(source: Path, report: Path) -> dict[str, Any]:
    from warplens.importers.kineto.native import TraceParser
    from warplens.importers.kineto.pieces import TextPieces

    with TraceParser() as reader:
        reader.feed(b"")
        begin = time.process_time()
        for piece in TextPieces(source):
            reader.feed(piece)
        reader.finish()
        return {"read": time.process_time() - begin}


def _json(source: Path, report: Path) -> dict[str, Any]:
    with open(source, "rb") as file:
        begin = time.process_time()
        json.load(file)
        return {"json": time.process_time() - begin}


def _import(source: Path, report: Path) -> dict[str, Any]:
    import resource

    from warplens.cli.light import import_lightly

    import_lightly()  # as `warplens import` does
    import warplens.importers.formats.kineto  # noqa: F401 - as HTA's modules are loaded before its clock starts
    from warplens.importers.importing import import_file

    begin, cpu = time.perf_counter(), time.process_time()
    import_file(source, report)
    spent = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
    return {**spent, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def _ask(source: Path, report: Path) -> dict[str, Any]:
    import warplens

    asked, told = {}, {}
    with warplens.open(report) as opened:
        for name in QUESTIONS:
            begin = time.process_time()
            told[name] = opened.stats(name).to_pylist()
            asked[name] = time.process_time() - begin
    temporal = told["temporal_breakdown"][0]
    overlap = {row["What"]: row["Overlap (%)"] for row in told["comm_comp_overlap"]}
    answers = {
        "idle": temporal["Idle (ns)"] // 1000,
        "compute": temporal["Compute (ns)"] // 1000,
        "communication": temporal["Communication (ns)"] // 1000,
        "overlap": round(overlap["communication"], 2),
        "queues": sorted(row["Max"] for row in told["queue_length"]),
    }
    return {"asked": asked, "answers": answers}


if __name__ == "__main__":
    main()
