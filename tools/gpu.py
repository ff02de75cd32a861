"""Runs what needs a GPU, step by step, with this machine's own Python packages and tools and without a network.

usage: PYTHON tools/gpu.py [NAME…] [--limit SECONDS] [--wheels FOLDER] [--out FOLDER] [--list]

Each step is a process of its own with a limit of its own: one that fails, hangs or breaks the GPU's context takes no other along.
What a step said, how it ended, the recordings of tests that failed and the figures of benchmarks are kept below --out as they come.
NAMEs are groups or steps (--list); `-k` and the like go to pytest by PYTEST_ADDOPTS. CuTe DSL is seldom there: `python tools/cubins.py`
compiles its kernels elsewhere, into build/gpu/cubins.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "gpu"
NEEDED = ("numpy", "pyarrow", "click", "rich", "duckdb", "pytest", "pytest_timeout")
TOLD = ("torch", "triton", "cupy", "cupy-cuda13x", "jax", "numba", "numba-cuda", "nvidia-cutlass-dsl", "cuda-bindings", "nvidia-cuda-cupti")
# In the order of what is learned from them: what one of the first shows may be why the later ones fail.
MINUTES = {"test_cuda_clock": 9, "gpu_launch": 9}
RECORDERS = ("intrakernel_cuda", "intrakernel_triton", "intrakernel_numba", "intrakernel_cute")
FIRST = ("test_intrakernel_cuda", "test_cuda_records", "test_torch_nvtx", "test_intrakernel_merged")
LAST = ("test_rules", "test_cuda_clock")


@dataclass(frozen=True)
class Step:
    """One process: what it is called, the group it belongs to, how it is started, and the seconds that it may take."""

    name: str
    group: str
    command: Callable[[Path], list[str]]
    seconds: int


def steps() -> list[Step]:
    """All steps, in their order."""
    tests = [path.stem for path in sorted((ROOT / "tests" / "gpu").glob("test_*.py"))]
    order = [*FIRST, *(name for name in tests if name not in (*FIRST, *LAST)), *LAST]
    found = [Step("doctor", "look", lambda out: [sys.executable, "-m", "warplens", "doctor"], 60)]
    found += [Step("nvidia-smi", "look", lambda out: ["nvidia-smi"], 30)]
    for name in order:
        group = "kernels" if name.startswith("test_intrakernel") else "programs"
        found.append(Step(name, group, partial(_pytest, name), 60 * MINUTES.get(name, 5)))
    for name in (*RECORDERS, "gpu_launch"):
        command = partial(_benchmark, name)
        found.append(Step(name, "figures", command, 60 * MINUTES.get(name, 4)))
    return found


def _pytest(name: str, out: Path) -> list[str]:
    kept = out / "tests" / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    words = [f"--basetemp={kept}", "-o", "tmp_path_retention_policy=failed", f"--junitxml={out / name}.xml"]
    if find_spec("pytest_timeout") is None:  # then its mark and its option are unknown words, which the project's settings refuse
        words += ["-o", "addopts=--import-mode=importlib -rxXs"]
    return [sys.executable, "-m", "pytest", *words, f"tests/gpu/{name}.py"]


def _benchmark(name: str, out: Path) -> list[str]:
    return [sys.executable, "benchmarks/run.py", "--keep", str(out / "figures"), name]


def run(step: Step, out: Path, environment: dict[str, str], seconds: float) -> tuple[str, float]:
    """Run a step; `ok`, `failed` or `stopped after … s`, and the seconds it took. All it says goes to a file, its end is shown."""
    log = out / f"{step.name}.log"
    began = time.monotonic()
    with log.open("wb") as file:
        try:
            process = subprocess.Popen(
                step.command(out), cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            file.write(f"{error}\n".encode())
            return "failed", time.monotonic() - began
        try:
            ended = "ok" if process.wait(seconds) == 0 else "failed"
        except subprocess.TimeoutExpired:
            ended = f"stopped after {seconds:.0f} s"
        finally:  # also what it started, and where we are interrupted
            for number, grace in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
                try:
                    os.killpg(process.pid, number)
                    process.wait(grace)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass
    return ended, time.monotonic() - began


def told(log: Path, ended: str) -> str:
    """The last line of a step that went well, else the last forty."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return (lines or [""])[-1].strip(" =") if ended == "ok" else "\n".join(["", *lines[-40:]])


def without_gpu() -> str | None:
    """Why there is no GPU here; None where there is one."""
    looked = subprocess.run([sys.executable, "tests/pieces.py", "gpu"], cwd=ROOT, capture_output=True, text=True, check=False)
    return (looked.stdout.strip() or looked.stderr.strip()) if looked.returncode else None


def facts() -> dict[str, str]:
    """What a figure depends on: versions of what is installed, the driver's among them."""
    found = {"python": sys.version.split()[0]}
    for name in (*TOLD, *NEEDED):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "is not installed"
    for name, words in (
        ("gpu", ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total,clocks.sm", "--format=csv,noheader"]),
        ("nvcc", ["nvcc", "--version"]),
    ):
        try:
            said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30).stdout.strip()
        except (OSError, subprocess.TimeoutExpired) as error:
            said = str(error)
        found[name] = said.splitlines()[-1] if said else "says nothing"
    return found


def build(out: Path) -> bool:
    """Compile the native half; without the Python binding where there are no headers of Python. What it said is kept."""
    cmake = ["cmake"] if shutil.which("cmake") else [sys.executable, "-m", "cmake"]
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    with (out / "build.log").open("wb") as log:
        for parts in ("spool;agent;desk;bindings", "spool;agent;desk"):
            made = BUILD / ("native" if "bindings" in parts else "native-without-binding")
            commands = (
                ["-S", ".", "-B", str(made), "-G", generator, f"-DPython_EXECUTABLE={sys.executable}", f"-DWARPLENS_PARTS={parts}"],
                ["--build", str(made), "--parallel"],
                ["--install", str(made), "--prefix", "src"],
            )
            log.write(f"--- {parts}\n".encode())
            log.flush()
            if all(subprocess.run([*cmake, *words], cwd=ROOT, stdout=log, stderr=log, check=False).returncode == 0 for words in commands):
                if "bindings" not in parts:
                    print("build: without warplens.nvtx's binding (see build.log: headers of Python?)", flush=True)
                return True
    return False


def wheels(folder: str, site: Path) -> None:
    """Install all wheels of a folder beside the machine's own packages, into a folder that only we see."""
    found = sorted(map(str, Path(folder).glob("*.whl")))
    if not found:
        sys.exit(f"gpu: {folder} has no wheels")
    words = ["--quiet", "--no-index", "--no-deps", "--upgrade", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *words, *found], check=True)


def main() -> int:
    """Build, run the steps that were asked for, and say how each ended; 1 where one failed, was stopped or had no time left."""
    every = steps()
    groups = list(dict.fromkeys(step.group for step in every))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"groups ({', '.join(groups)}) or steps; default: all")
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="SECONDS", help="begin nothing that cannot end by then")
    parser.add_argument("--wheels", default="", metavar="FOLDER", help="install these first, without a network")
    parser.add_argument("--out", default=str(BUILD / "results"), metavar="FOLDER", help="where everything is kept (build/gpu/results)")
    parser.add_argument("--list", action="store_true", help="show the steps, and run nothing")
    words = parser.parse_args()
    unknown = set(words.names) - set(groups) - {step.name for step in every}
    if unknown:
        parser.error(f"no group or step {', '.join(sorted(unknown))}; --list shows them")
    chosen = [step for step in every if not words.names or {step.name, step.group} & set(words.names)]
    if words.list:
        for step in chosen:
            print(f"{step.group:10}{step.name:28}at most {step.seconds} s")
        return 0
    began = time.monotonic()
    if reason := without_gpu():
        print(f"gpu: nothing was run, {reason}")
        return 0
    out, site = Path(words.out).resolve(), BUILD / "site"
    for folder in (out, site):
        folder.mkdir(parents=True, exist_ok=True)
    if words.wheels:
        wheels(words.wheels, site)
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), str(site), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "WARPLENS_GOLDEN": str(out / "golden")}
    (out / "golden").mkdir(exist_ok=True)
    sys.path[:0] = [str(site)]
    found = facts()
    (out / "facts.json").write_text(json.dumps(found, indent=1) + "\n")
    print(*(f"{name}: {value}" for name, value in found.items()), sep="\n", flush=True)
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if lacking:
        print(f"gpu: {sys.executable} lacks {', '.join(lacking)}; tests that need them say so (--wheels brings them)", flush=True)
    if not build(out):
        print(
            told(out / "build.log", "failed"), "gpu: the native half does not build; only what needs none of it runs", sep="\n", flush=True
        )
    ended: dict[str, str] = {}
    for step in chosen:
        left = words.limit - (time.monotonic() - began) - 15  # what stopping one and writing the end may take
        if left < min(60, step.seconds):
            ended[step.name] = "not run, no time left"
            continue
        ended[step.name], took = run(step, out, environment, min(step.seconds, left))
        print(f"{step.name}: {ended[step.name]}, {took:.0f} s. {told(out / f'{step.name}.log', ended[step.name])}", flush=True)
        (out / "ended.json").write_text(json.dumps(ended, indent=1) + "\n")
    bad = {name: how for name, how in ended.items() if how != "ok"}
    print(
        f"{len(ended) - len(bad)} of {len(ended)} steps went well; {out} has what they said",
        *(f"  {n}: {h}" for n, h in bad.items()),
        sep="\n",
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
