"""Records how this machine's CUPTI behaves without warplens: prints a summary, writes all lines to files.

usage: PYTHON tools/gpu_probe.py [--out FOLDER] [--cupti LIBRARY] [--program WORD …]

native/tests/probe/cupti_probe.cpp is compiled and injected into a PyTorch program, four times: with buffers of 1 MiB, with 256 KiB and the
nodes of graphs, with flushes while cuInit runs, and with torch.profiler in the program. docs/dev/cupti.md says what each line decides.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60
# Of each run: its name, the argument of the program, what is set for the probe.
RUNS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("1 MiB", "phases", {"PROBE_KB": "1024"}),
    ("256 KiB, nodes", "phases", {"PROBE_KB": "256", "PROBE_NODES": "1"}),
    ("flush in cuInit", "short", {"PROBE_EARLY": "1"}),
    ("torch.profiler", "profiler", {}),
)


@dataclass(frozen=True)
class Line:
    """One line of the probe or of the program: when (s), which thread (0: the program), what, and its fields."""

    time: float
    thread: int
    event: str
    fields: dict[str, str]

    def number(self, name: str) -> float:
        """A field as a number; 0 where it is missing."""
        return float(self.fields.get(name, "0"))


def parse(text: str) -> Iterator[Line]:
    """Lines of the probe (`SECONDS THREAD EVENT key=value …`) and of the program (`SECONDS PHASE words`); others are left out."""
    for line in text.splitlines():
        if probe := re.match(r"(\d+\.\d+) (\d+) ([A-Z_]+) ?(.*)", line):
            fields = dict(re.findall(r"(\w+)=('[^']*'|\S*)", probe[4]))
            yield Line(float(probe[1]), int(probe[2]), probe[3], fields)
        elif phase := re.match(r"(\d+\.\d+) PHASE (.*)", line):
            yield Line(float(phase[1]), 0, "PHASE", {"name": phase[2]})


def within(lines: list[Line], phase: str) -> list[Line]:
    """The lines from the beginning of a phase to that of the next."""
    starts = [line for line in lines if line.event == "PHASE"]
    for index, start in enumerate(starts):
        if start.fields["name"] == phase:
            end = starts[index + 1].time if index + 1 < len(starts) else float("inf")
            return [line for line in lines if start.time <= line.time < end]
    return []


def _clock(lines: list[Line]) -> Iterator[str]:
    words = []
    for line in lines:
        if line.event == "CLOCK":
            ours, real = line.number("from_ours_ns"), line.number("from_realtime_ns")
            name = "ours" if abs(ours) < 1e6 else "realtime" if abs(real) < 1e6 else "neither"
            words.append(f"{line.fields['when']} {name}")
    yield "clock: " + ", ".join(f"{word} x{len(list(same))}" for word, same in groupby(words))


def _subscribing(lines: list[Line]) -> Iterator[str]:
    again = [
        f"{line.fields['size']} -> {line.fields['result']}"
        for line in lines
        if line.event == "SUBSCRIBE_AGAIN"
    ]
    yield "second subscribe_v2 by size of its parameters: " + (
        ", ".join(again) or "there is no such function"
    )
    refused = [
        line
        for line in lines
        if line.event in ("ENABLE", "ENABLE_CALL", "SUBSCRIBE", "CALLBACKS") and line.number("result")
    ]
    yield "refused: " + (", ".join(f"{line.event} {line.fields}" for line in refused) or "nothing")


def _order(lines: list[Line]) -> Iterator[str]:
    records = [
        line
        for line in within(lines, "five")
        if line.event == "RECORD" and line.fields["what"] in ("kernel", "runtime", "driver")
    ]
    shown = [
        f"{line.fields['what']} {line.fields['correlation']} {line.fields['name']}".strip()
        for line in records[:9]
    ]
    yield "records of five launches: " + "; ".join(shown)


def _flushes(lines: list[Line], phase: str) -> Iterator[str]:
    here = within(lines, phase)
    flushes = [line for line in here if line.event == "FLUSH"]
    if not flushes:
        return
    done = [line for line in here if line.event == "COMPLETE"]
    by_flush = [line for line in done if line.number("during_flush") >= 0 and line.number("work")]
    took = [line.number("ms") for line in flushes]
    canaries = sum(line.number("canaries") > 0 for line in flushes)
    yield (
        f"{phase}: {len(flushes)} flushes of {median(took):.2f} ms (at most {max(took):.1f}), canary back with {canaries}; "
        f"{len(done)} buffers came back ({len(by_flush)} with GPU work by a flush, "
        f"{sum(line.number('during_flush') < 0 for line in done)} without a flush) on {len({line.thread for line in done})} threads, "
        f"work {sum(line.number('work') for line in done):.0f}, out at most {max((line.number('out') for line in flushes), default=0):.0f}"
    )


def _exit(lines: list[Line]) -> Iterator[str]:
    begun = next((line.time for line in lines if line.event == "ATEXIT"), None)
    if begun is None:
        yield "exit: the exit handler was not called"
        return
    for line in lines:
        if line.time < begun or line.event not in ("ATEXIT", "CONTEXT_DESTROY", "FLUSH", "COMPLETE", "END"):
            continue
        kept = ("flag", "records", "work", "unfinished", "canaries", "out", "ms")
        yield f"  +{(line.time - begun) * 1e3:.1f} ms {line.event} " + " ".join(
            f"{k}={v}" for k, v in line.fields.items() if k in kept
        )


def _early(lines: list[Line]) -> Iterator[str]:
    ready = next((line.time for line in lines if line.event == "INIT_FINISHED"), None)
    before = [line for line in lines if ready is not None and line.time < ready]
    early = [line.event for line in before if line.event in ("REQUEST", "FLUSH", "COMPLETE")]
    injected = next((line.time for line in lines if line.event == "INJECTED"), None)
    took = f"{(ready - injected) * 1e3:.0f} ms after the injection" if ready and injected else "never seen"
    yield f"cuInit finished {took}; before that: {', '.join(early) or 'no request, no flush'}"


def _profiler(lines: list[Line]) -> Iterator[str]:
    got = [
        line.fields["name"]
        for line in lines
        if line.event == "PHASE" and line.fields["name"].startswith("torch.profiler-got")
    ]
    spans = {name: within(lines, name) for name in ("before", "within", "after")}
    kernels = [
        line.number("start") for line in lines if line.event == "RECORD" and line.fields["what"] == "kernel"
    ]
    counts = {
        name: sum(span[0].time <= start <= span[-1].time for start in kernels) if span else 0
        for name, span in spans.items()
    }
    canaries = {
        name: [int(line.number("canaries")) for line in span if line.event == "FLUSH"]
        for name, span in spans.items()
    }
    yield f"kernels that the probe received of 20 each: {counts}; {', '.join(got)}; canaries back: {canaries}"


def summary(which: str, lines: list[Line]) -> list[str]:
    """What the lines of a run say, each as a sentence."""
    found = [*_clock(lines), *_early(lines)]
    if which == "profiler":
        found += _profiler(lines)
    if which == "phases":
        found += [*_subscribing(lines), *_order(lines)]
        for phase in ("never-idle", "tiny", "graph"):
            found += _flushes(lines, phase)
        found += [
            line.fields["name"]
            for line in lines
            if line.event == "PHASE" and line.fields["name"].startswith("tiny-made")
        ]
    return [*found, *_exit(lines)]


def compile_probe(out: Path) -> Path:
    """The injection library, built with the machine's compiler."""
    library = out / "libcupti_probe.so"
    source = ROOT / "native" / "tests" / "probe" / "cupti_probe.cpp"
    command = [
        "g++",
        "-std=c++20",
        "-O1",
        "-shared",
        "-fPIC",
        f"-I{ROOT / 'native'}",
        str(source),
        "-o",
        str(library),
        "-ldl",
        "-pthread",
    ]
    subprocess.run(command, check=True)
    return library


def find_cupti() -> str:
    """The CUPTI that PyTorch loads, else the loader's."""
    for package in ("nvidia.cu13", "nvidia.cuda_cupti"):
        try:
            spec = find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder, "lib").glob("libcupti.so.*")):
                return str(path)
    return "libcupti.so.13"


def run(
    probe: Path, out: Path, cupti: str, number: int, program: list[str], settings: dict[str, str]
) -> tuple[str, list[Line]]:
    """Run the program with the probe in it; how it ended, and the lines of both in the order of time."""
    prefix = out / f"probe-{number}"
    environment = {
        **os.environ,
        **settings,
        "PROBE_CUPTI": cupti,
        "PROBE_OUT": str(prefix),
        "CUDA_INJECTION64_PATH": str(probe),
    }
    said = out / f"probe-{number}.program"
    with said.open("wb") as file:
        try:
            ended = subprocess.run(
                program, env=environment, stdout=file, stderr=file, timeout=SECONDS, check=False
            ).returncode
            how = f"exit status {ended}"
        except subprocess.TimeoutExpired:
            how = f"stopped after {SECONDS} s"
    texts = [said.read_text(errors="replace")]
    texts += [path.read_text() for path in out.glob(f"{prefix.name}.*") if path.suffix[1:].isdigit()]
    return how, sorted((line for text in texts for line in parse(text)), key=lambda line: line.time)


def main() -> int:
    """Run all, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--out",
        default=str(ROOT / "build" / "gpu" / "probe"),
        metavar="FOLDER",
        help="where all lines are kept",
    )
    parser.add_argument(
        "--cupti", default="", metavar="LIBRARY", help="the libcupti to ask (that of PyTorch)"
    )
    parser.add_argument(
        "--program",
        default="",
        metavar="WORDS",
        help="your own program; the name of the run is appended",
    )
    words = parser.parse_args()
    out = Path(words.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    probe, cupti = compile_probe(out), words.cupti or find_cupti()
    program = shlex.split(words.program) or [sys.executable, str(ROOT / "tools" / "gpu_probe_program.py")]
    print(f"CUPTI {cupti}")
    silent = 0
    for number, (name, which, settings) in enumerate(RUNS):
        how, lines = run(probe, out, cupti, number, [*program, which], settings)
        silent += not any(line.event == "INJECTED" for line in lines)
        version = next((line.fields["cupti"] for line in lines if line.event == "VERSION"), "never loaded")
        print(f"--- {name} ({how}; CUPTI {version})", *summary(which, lines), sep="\n")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
