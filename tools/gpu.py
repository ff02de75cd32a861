"""Runs the GPU steps one by one, with this machine's Python packages and without a network.

usage: PYTHON tools/gpu.py [NAME…] [--limit SECONDS] [--carried] [--wheels FOLDER] [--out FOLDER] [--archive FILE] [--list]

Each step is a separate process with its own time limit: one that fails, hangs or breaks the GPU's context takes no other along.
What a step said, how it ended, the recordings of tests that failed and the figures of benchmarks are kept below --out as they come.
NAMEs are groups or steps (--list); `-k` and the like go to pytest by PYTEST_ADDOPTS. A step that went well is left out of the next
call on the same sources, unless its own name is given. What `make gpu-pack` made elsewhere is used where it lies, in build/gpu.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gpu_build
from gpu_results import Ended, Results, only_skipped, pack

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("numpy", "pyarrow", "click", "rich", "duckdb", "pytest", "pytest_timeout")
TOLD = (
    "torch",
    "triton",
    "cupy",
    "cupy-cuda13x",
    "jax",
    "numba",
    "numba-cuda",
    "nvidia-cutlass-dsl",
    "cuda-bindings",
    "nvidia-cuda-cupti",
)
# By what is learned in a minute: what one of the first shows may be why the later ones fail.
GROUPS = ("probe", "look", "truth", "cost", "programs", "inside", "rare")
# Where a file belongs, in the order of a group; of others the name decides, and they come last in their group.
GROUP_OF = {
    "test_cuda_first": "look",
    "test_torch_nvtx": "look",
    "test_cuda_records": "look",
    "test_cuda_truth": "truth",
    "test_cuda_clock": "truth",
    "gpu_launch": "cost",
    "test_cuda_exits": "programs",
    "test_cuda_frameworks": "programs",
    "test_cuda_programs": "programs",
    "test_cuda_beside": "programs",
    "test_intrakernel_cuda": "inside",
    "test_intrakernel_merged": "inside",
}
# Tests that compare times have the machine to themselves, and pytest-xdist cannot pass on a warning of Numba's while Numba is imported.
# Others run side by side: for most of their time PyTorch starts.
ALONE = ("test_cuda_clock", "test_rules", "test_intrakernel_numba")
SIDE_BY_SIDE = 8
MOST_S = 240  # of a step
RESERVE_S = 30  # what stopping a step, packing the results and saying how it went may take
PATIENCE_S = 5  # for each signal
NAMED = 8  # files that an archive lacks
PACK_EACH_S = 60  # what was learned is safe also where a later step takes the machine with it


@dataclass(frozen=True)
class Step:
    """One process: its name and group, how it is started, the seconds that it may take, and how many of them must be left to begin it.

    It may need the native half.
    """

    name: str
    group: str
    command: Callable[[Path], list[str]]
    seconds: int = MOST_S
    least: int = 60
    native: bool = True


def steps() -> list[Step]:
    """All steps, in their order."""
    probe = [sys.executable, "tools/gpu_probe.py", "--out"]
    found = [
        Step("probe", "probe", lambda out: [*probe, str(out / "probe")], 120, native=False),
        Step("nvidia-smi", "look", lambda out: ["nvidia-smi"], 30, native=False),
        Step("doctor", "look", lambda out: [sys.executable, "-m", "warplens", "doctor"], 60),
    ]
    tests = [path.stem for path in (ROOT / "tests" / "gpu").glob("test_*.py")]
    benchmarks = [
        path.stem
        for path in (ROOT / "benchmarks").glob("[!_]*.py")
        if re.search(r'^NEEDS = "gpu"', path.read_text(), re.MULTILINE)
    ]
    order = list(GROUP_OF)

    def place(name: str) -> tuple[bool, int, str]:
        return name not in tests, order.index(name) if name in order else len(order), name

    for name in sorted([*tests, *benchmarks], key=place):
        group = GROUP_OF.get(name, "inside" if "intrakernel" in name else "rare")
        if name in tests:
            found.append(Step(name, group, partial(_pytest, name)))
        else:  # one that is stopped has measured nothing
            found.append(Step(name, group, partial(_benchmark, name), least=MOST_S // 2))
    return sorted(found, key=lambda step: GROUPS.index(step.group))


def _pytest(name: str, out: Path) -> list[str]:
    kept = out / "tests" / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    words = [
        f"--basetemp={kept}",
        "-v",
        "-rfExXs",
        "-o",
        "tmp_path_retention_policy=failed",
        f"--junitxml={out / name}.xml",
    ]
    if find_spec("xdist") is not None and name not in ALONE:
        words += [
            "-n",
            str(SIDE_BY_SIDE),
            "-p",
            "no:benchmark",
        ]  # pytest-benchmark warns of xdist, and a warning is an error here
    if (
        find_spec("pytest_timeout") is None
    ):  # then its mark and its option are unknown words, which the project's settings refuse
        words += ["-o", "addopts=--import-mode=importlib -rfExXs"]
    return [sys.executable, "-m", "pytest", *words, f"tests/gpu/{name}.py"]


def _benchmark(name: str, out: Path) -> list[str]:
    quick = ["--quick"] if GROUP_OF.get(name) == "cost" else []
    return [sys.executable, "benchmarks/run.py", *quick, "--keep", str(out / "figures"), name]


def run(step: Step, out: Path, environment: dict[str, str], seconds: float) -> Ended:
    """Run a step and say how it ended. All it says goes to a file."""
    log, xml = out / f"{step.name}.log", out / f"{step.name}.xml"
    xml.unlink(missing_ok=True)
    began = time.monotonic()
    with log.open("wb") as file:
        try:
            process = subprocess.Popen(
                step.command(out), cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            file.write(f"{error}\n".encode())
            return Ended("failed", time.monotonic() - began, str(error))
        how = "stopped"
        try:
            how = "ok" if process.wait(seconds) == 0 else "failed"
        except subprocess.TimeoutExpired:
            how = f"stopped after {seconds:.0f} s"
        finally:  # also what it started, and where we are interrupted; pytest writes down what it has when it gets the first
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(PATIENCE_S)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass
    if how == "ok" and only_skipped(xml):
        how = "skipped"
    return Ended(how, time.monotonic() - began, (ending(log, 1) or [""])[0].strip(" ="))


def ending(log: Path, count: int) -> list[str]:
    """The last lines of what a step said."""
    return [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-count:]


def without_gpu() -> str | None:
    """Why there is no GPU here; None where there is one."""
    looked = subprocess.run(
        [sys.executable, "tests/support/optional_dependencies.py", "gpu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return (looked.stdout.strip() or looked.stderr.strip()) if looked.returncode else None


def facts() -> dict[str, str]:
    """What a figure depends on: versions of what is installed, the driver's among them."""
    found = {"python": sys.version.split()[0]}
    for name in (*TOLD, *NEEDED):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "is not installed"
    commands = {
        "gpu": [
            "nvidia-smi",
            "--query-gpu=name,driver_version,compute_cap,memory.total,clocks.sm",
            "--format=csv,noheader",
        ],
        "nvcc": ["nvcc", "--version"],
        "g++": ["g++", "-dumpfullversion"],
    }
    with ThreadPoolExecutor() as pool:
        return found | dict(zip(commands, pool.map(_last_line, commands.values()), strict=True))


def _last_line(command: list[str]) -> str:
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return said.splitlines()[-1] if said else "says nothing"


def prepare(out: Path, wheels: str) -> dict[str, str]:
    """Make folders, unpack wheels, write down on what all this runs; return the environment of the steps."""
    site = gpu_build.WORK / "site"
    for folder in (out / "golden", out / "probe", site):
        folder.mkdir(parents=True, exist_ok=True)
    brought = (
        sorted(Path(wheels).glob("*.whl")) if wheels else sorted((gpu_build.PACK / "wheels").glob("*.whl"))
    )
    if wheels and not brought:
        sys.exit(f"gpu: {wheels} has no wheels")
    for line in gpu_build.unpack(brought, site):
        say(line)
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), str(site), os.environ.get("PYTHONPATH", "")]))
    sys.path[:0] = [str(site)]
    found = facts()
    (out / "facts.json").write_text(json.dumps(found, indent=1) + "\n")
    print(*(f"{name}: {value}" for name, value in found.items()), sep="\n", flush=True)
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if lacking:
        say(
            f"{sys.executable} lacks {', '.join(lacking)}; tests that need them say so (--wheels brings them)"
        )
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "WARPLENS_GOLDEN": str(out / "golden")}


def say(line: str) -> None:
    """Print a line of this tool, at once."""
    print(f"gpu: {line}", flush=True)


def arguments(every: list[Step]) -> argparse.Namespace:
    """Read the command line; a name that is none ends this."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"groups ({', '.join(GROUPS)}) or steps; default: all"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="begin nothing that cannot end by then",
    )
    parser.add_argument(
        "--carried",
        action="store_true",
        help="compile nothing, take the libraries that make gpu-pack brought",
    )
    parser.add_argument(
        "--wheels", default="", metavar="FOLDER", help="unpack these first (build/gpu/wheels)"
    )
    parser.add_argument(
        "--out",
        default=str(gpu_build.WORK / "results"),
        metavar="FOLDER",
        help="keep all here (build/gpu-run/results)",
    )
    parser.add_argument(
        "--archive",
        default=os.path.join(os.environ["OUT"], "results.tgz") if os.environ.get("OUT") else "",
        metavar="FILE",
        help="pack all of it into this file at the end (results.tgz in the folder OUT, where that is set)",
    )
    parser.add_argument("--list", action="store_true", help="show the steps, and run nothing")
    words = parser.parse_args()
    unknown = set(words.names) - set(GROUPS) - {step.name for step in every}
    if unknown:
        parser.error(f"no group or step {', '.join(sorted(unknown))}; --list shows them")
    return words


def take(steps: list[Step], words: argparse.Namespace, results: Results, began: float) -> None:
    """Run the steps that did not go well before, or are named; build before the first that needs it."""
    out = results.folder
    environment = prepare(out, words.wheels)
    say(f"{time.monotonic() - began:.0f} s until here")
    built, packed = False, began
    for step in steps:
        left = words.limit - (time.monotonic() - began) - RESERVE_S
        if step.name in results.before and step.name not in words.names:
            continue
        if left < min(step.least, step.seconds):
            ended = Ended("not run, no time left")
        else:
            if step.native and not built:
                start = time.monotonic()
                say(f"{gpu_build.install(out, build=not words.carried)}, {time.monotonic() - start:.0f} s")
                built, left = True, left - (time.monotonic() - start)
            ended = run(step, out, environment, min(step.seconds, left))
            print(f"{step.name}: {ended.how}, {ended.seconds:.0f} s. {ended.said}", flush=True)
            if ended.how not in ("ok", "skipped"):
                print(*ending(out / f"{step.name}.log", 20), sep="\n", flush=True)
        results.put(step.name, ended)
        if words.archive and time.monotonic() - packed > PACK_EACH_S:
            pack(out, Path(words.archive).resolve())
            packed = time.monotonic()


def main() -> int:
    """Run the steps that were asked for, and say how each ended.

    1 where one failed, was stopped or had no time left.
    """
    every = steps()
    words = arguments(every)
    chosen = [step for step in every if not words.names or {step.name, step.group} & set(words.names)]
    if words.list:
        for step in chosen:
            print(f"{step.group:10}{step.name:28}at most {step.seconds} s")
        return 0
    began = time.monotonic()
    if reason := without_gpu():
        say(f"nothing was run, {reason}")
        return 0
    out = Path(words.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out, gpu_build.digest(), [gpu_build.PACK / "ended.json"])
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        take(chosen, words, results, began)
    finally:
        names = [step.name for step in chosen if step.name in results.steps]
        bad = [
            name for name in names if not results.steps[name].how.startswith(("ok", "skipped", "left out"))
        ]
        lines = results.summary(names)
        (out / "summary.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if words.archive:
            left = pack(out, Path(words.archive).resolve())
            more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
            say(
                f"{words.archive} has the results"
                + (f", without {', '.join(left[:NAMED])}{more}" if left else "")
            )
        print(
            "",
            *lines,
            f"{len(names) - len(bad)} of {len(names)} steps without fault; {out}",
            sep="\n",
            flush=True,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
