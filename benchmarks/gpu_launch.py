"""Cost of CUDA recording per launch, graph and training step on a GPU, beside raw CUPTI and torch.profiler.

All modes take turns. Raw CUPTI is an injection library that enables kinds of records and throws the records away: less cannot be had.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import Row

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

from gpu_probe import compile_probe, find_cupti  # noqa: E402 - tools are scripts, not a package

NEEDS = "gpu"  # a piece of tests/support/optional_dependencies.py
RAW_BUDGET = 1.15

_Found = dict[str, Any]  # a name from a program's line of JSON to its figures


@dataclass(frozen=True)
class Mode:
    """How a program is recorded: options of `warplens profile`, kinds for raw CUPTI, or words for the program itself."""

    options: tuple[str, ...] | None = None
    kinds: str | None = None
    words: tuple[str, ...] = field(default=())


# The kinds that warplens enables by default: devices, contexts, streams, kernels, copies, memsets, waits, overhead, correlation, API.
_SAME_KINDS = "8,9,37,10,1,2,22,38,17,39,5"
_RAW = "raw CUPTI, the same kinds"
_DEFAULT = Mode(("-t", "cuda,nvtx"))
_EVERYTHING = (
    "-t",
    "cuda,nvtx",
    "--cuda-trace-all-apis=true",
    "--cuda-memory-usage=true",
    "--cuda-event-trace=true",
)
LAUNCH_MODES = {
    "bare": Mode(),
    "warplens, NVTX alone": Mode(("-t", "nvtx")),
    "raw CUPTI, kernels": Mode(kinds="10"),
    _RAW: Mode(kinds=_SAME_KINDS),
    "warplens": _DEFAULT,
    "warplens, whole graphs": Mode(("-t", "cuda,nvtx", "--cuda-graph-trace=graph")),
    "warplens, everything": Mode(_EVERYTHING),
}
TORCH_MODES = {
    "nothing": Mode(words=("nothing",)),
    _RAW: Mode(kinds=_SAME_KINDS, words=("raw",)),
    "warplens": Mode(
        ("-t", "cuda,nvtx", "-c", "cudaProfilerApi", "--capture-range-end=repeat"), words=("window",)
    ),
    "torch.profiler, CUDA": Mode(words=("CUDA",)),
    "torch.profiler, CPU and CUDA": Mode(words=("CPU", "CUDA")),
}
# Prints a line of JSON: microseconds of a launch in an eager model and of a training step, in blocks that are not recorded and in blocks
# that are. They take turns in one process, since two processes differ by up to a third on a machine that others use, too.
TORCH = """
import contextlib, ctypes, json, os, sys, time, torch
def block(): return torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))
eager = torch.nn.Sequential(*[block() for _ in range(12)]).cuda()
small = torch.randn(64, 256, device="cuda")
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True)
model = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
large = torch.randn(16, 512, 1024, device="cuda", dtype=torch.bfloat16)
def inference():
    with torch.no_grad(): eager(small)
def step():
    optimizer.zero_grad(set_to_none=True)
    model(large).float().square().mean().backward()
    optimizer.step()
@contextlib.contextmanager
def window():
    torch.cuda.profiler.start()
    yield
    torch.cuda.profiler.stop()
raw = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).probe_record if sys.argv[1] == "raw" else lambda on: None
raw(0)
@contextlib.contextmanager
def enabled():
    raw(1)
    yield
    raw(0)
def recorder():
    if sys.argv[1] == "raw": return enabled()
    if sys.argv[1] == "nothing": return contextlib.nullcontext()
    if sys.argv[1] == "window": return window()
    return torch.profiler.profile(activities=[getattr(torch.profiler.ProfilerActivity, name) for name in sys.argv[1:]])
found = {}
for name, work, count, per in (("launch", inference, 200, 36), ("step", step, 15, 1)):
    warm = time.perf_counter()
    while time.perf_counter() < warm + 1:  # an idle GPU has a low clock
        work(); torch.cuda.synchronize()
    took = [[], []]
    for turn in range(16):
        with recorder() if turn % 2 else contextlib.nullcontext():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(count): work()
            torch.cuda.synchronize()
            took[turn % 2].append((time.perf_counter() - begin) / count / per * 1e6)
    found[name] = took
print(json.dumps(found))
"""


def run(quick: bool) -> Iterator[Row]:
    """Time both programs in all their modes, in turn."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        folder = Path(name)
        probe = compile_probe(folder)
        launches = _timed([compile_launches(folder)], LAUNCH_MODES, folder, probe, 2 if quick else 8)
        for key, what in (
            ("launch", "launch of an empty kernel"),
            ("replay", "replay of a graph of 100 kernels"),
        ):
            yield from _launch_rows(
                what, {mode: [one[key] / 1e3 for one in found] for mode, found in launches.items()}
            )
        text = folder / "training.py"
        text.write_text(TORCH, encoding="utf-8")
        training = _timed([sys.executable, str(text)], TORCH_MODES, folder, probe, 1 if quick else 4)
    for key, what in (("launch", "launch in an eager model"), ("step", "training step")):
        yield from _training_rows(
            what, {mode: [one[key] for one in rounds] for mode, rounds in training.items()}
        )


def compile_launches(folder: Path) -> str:
    """Compile gpu_launch.cu for the GPU of this machine; the program."""
    program = str(folder / "launches")
    source = str(ROOT / "benchmarks" / "gpu_launch.cu")
    subprocess.run(["nvcc", "-std=c++17", "-O2", "-arch=native", source, "-o", program], check=True)
    return program


def _launch_rows(what: str, found: Mapping[str, list[float]]) -> Iterator[Row]:
    """The best of all rounds in each mode, for other work on the machine only adds to it."""
    best = {mode: min(values) for mode, values in found.items()}
    for mode, value in best.items():
        note = f"bare {best['bare']:.2f} us, median {statistics.median(found[mode]):.2f} us"
        if mode == "warplens":
            yield Row(f"{what}, {mode}", value, "us", _RAW, best[_RAW], RAW_BUDGET, note=note)
        elif mode != "bare":
            yield Row(f"{what}, {mode}", value, "us", "bare", best["bare"], note=note)


def _training_rows(what: str, found: Mapping[str, list[list[list[float]]]]) -> Iterator[Row]:
    """The best block in each mode. A round has the blocks that were not recorded, then those that were (us)."""
    off, on = (
        {mode: [value for one in rounds for value in one[which]] for mode, rounds in found.items()}
        for which in (0, 1)
    )
    for mode, values in on.items():
        median, bare = statistics.median(values), min(off[mode])
        note = (
            f"best of {len(values)} blocks, median {median:,.1f} us; not recorded {bare:,.1f}, median "
            f"{statistics.median(off[mode]):,.1f}"
        )
        if mode == "warplens":
            yield Row(f"{what}, {mode}", min(values), "us", _RAW, min(on[_RAW]), RAW_BUDGET, note=note)
        else:
            yield Row(f"{what}, {mode}", min(values), "us", "not recorded, same process", bare, note=note)


def _timed(
    program: list[str], modes: Mapping[str, Mode], folder: Path, probe: Path, rounds: int
) -> dict[str, list[_Found]]:
    found: dict[str, list[_Found]] = {mode: [] for mode in modes}
    for _ in range(rounds):
        for name, mode in modes.items():
            found[name].append(_run(program, mode, folder, probe))
    return found


def _run(program: list[str], mode: Mode, folder: Path, probe: Path) -> _Found:
    """Run a program in a mode; what its line of JSON says."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [*program, *mode.words]
    if mode.options is not None:
        command = [
            sys.executable,
            "-m",
            "warplens",
            "profile",
            "--light",
            "-q",
            "-f",
            "-o",
            str(folder / "run"),
            *mode.options,
            "--",
            *command,
        ]
    if mode.kinds is not None:
        injected = {
            "CUDA_INJECTION64_PATH": str(probe),
            "PROBE_CUPTI": find_cupti(),
            "PROBE_OUT": str(folder / "probe"),
        }
        environment |= {**injected, "PROBE_KINDS": mode.kinds, "PROBE_KB": "256"}
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=120
    )
    found: _Found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return found
