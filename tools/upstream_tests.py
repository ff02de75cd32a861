"""Runs PyPI nvtx's tests against `warplens.nvtx`, and against PyPI nvtx while our agent records it.

`python tools/upstream_tests.py [MODE…]`. Fetches the sdist of the pinned version with pip, and keeps it and everything
made from it below build/upstream, outside the sources. Needs gcc, pip, a network (or the sdist there already).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "upstream"
VERSION = "0.2.16"
CASES = 4467
SHARE = 0.97


@dataclass(frozen=True)
class Mode:
    """One way to run the test files: whose library, whether a tool listens, how many of the cases must pass."""

    subject: str
    tool: bool
    least: float
    what: str
    disabled: bool = False


MODES = {
    "attached": Mode("warplens", True, SHARE, "warplens.nvtx, our agent and a checking tool listen"),
    "disabled": Mode("warplens", False, SHARE, "warplens.nvtx, NVTX_DISABLE=1", disabled=True),
    "silent": Mode(
        "warplens", False, 0.80, "warplens.nvtx, no tool: 810 cases compare a decorated function with `is`"
    ),
    "recorded": Mode("nvtx", True, 1.0, f"PyPI nvtx {VERSION} itself, our agent and a checking tool listen"),
}


def fetch() -> Path:
    """Return the unpacked sdist of the pinned version."""
    folder = PLACE / f"nvtx-{VERSION}"
    if folder.exists():
        return folder
    PLACE.mkdir(parents=True, exist_ok=True)
    archive = PLACE / f"nvtx-{VERSION}.tar.gz"
    if not archive.exists():
        # Only nvtx as source: its build requirements, which pip asks for its metadata, may come as wheels.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "nvtx"]
        subprocess.run([*command, f"nvtx=={VERSION}", "--dest", str(PLACE)], check=True)
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(PLACE, filter="data")
        else:
            packed.extractall(PLACE)
    return folder


def build_oracle() -> Path:
    """Return the checking tool, built."""
    target = PLACE / "liboracle.so"
    files = importlib.metadata.files("nvidia-nvtx") or []
    headers = next(Path(str(file.locate())).parent.parent for file in files if file.name == "nvToolsExt.h")
    source = ROOT / "tests" / "upstream" / "oracle.cpp"
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        ["g++", *flags, "-isystem", str(headers), str(source), "-o", str(target), "-ldl"], check=True
    )
    return target


def upstream_python() -> str:
    """Return a Python that has the pinned PyPI nvtx, NumPy and pytest."""
    python = PLACE / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE / "venv")], check=True)
        packages = [f"nvtx=={VERSION}", "numpy", "pytest", "pytest-timeout"]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    return str(python)


def prepare(folder: Path, upstream: Path) -> Path:
    """Lay out the test files with our conftest beside them; return their folder."""
    bodies = folder / "bodies"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(upstream / "tests", bodies)
    (bodies / "__init__.py").touch()
    lines = "from tests.upstream.plugin import *\nfrom tests.upstream.plugin import MODE\nfrom tests.upstream.verify import *\n"
    (bodies / "conftest.py").write_text(lines, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return bodies


def run(name: str, upstream: Path, oracle: Path | None, words: list[str]) -> list[str]:
    """Run one mode; return what is wrong with its outcome."""
    mode = MODES[name]
    folder = PLACE / name
    bodies = prepare(folder, upstream)
    result = folder / "result.json"
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("NVTX_", "PYTEST_"))
    }
    environment |= {"UPSTREAM_MODE": name, "UPSTREAM_SUBJECT": mode.subject, "UPSTREAM_RESULT": str(result)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    if words:
        environment["UPSTREAM_PART"] = "1"
    if mode.disabled:
        environment["NVTX_DISABLE"] = "1"
    python = sys.executable if mode.subject == "warplens" else upstream_python()
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "-rN",
        "--maxfail=25",
        *words,
        str(bodies),
    ]
    report = folder / "run.warplens"
    if mode.tool:
        agent = ROOT / "src" / "warplens" / "_lib" / "libwarplens_agent.so"
        tool = ["env", f"NVTX_INJECTION64_PATH={oracle}", f"ORACLE_NEXT={agent}"]
        command = [
            sys.executable,
            "-m",
            "warplens",
            "profile",
            "--light",
            "-f",
            "-o",
            str(report),
            *tool,
            *command,
        ]
    print(f"\n{name}: {mode.what}", flush=True)
    code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    if not result.exists():
        return [f"{name}: pytest left no result (exit code {code})"]
    facts: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    outcomes = facts["outcomes"]
    passed, collected = outcomes.get("passed", 0), facts["collected"]
    print(f"{name}: {passed} of {collected} pass, {outcomes.get('deviates', 0)} deviate as expected")
    wrong = [] if code == 0 else [f"{name}: pytest exit code {code}, {outcomes}"]
    if not words:
        if collected != CASES:
            wrong.append(f"{name}: {collected} cases instead of {CASES}")
        if passed < mode.least * collected:
            wrong.append(f"{name}: fewer than {mode.least:.0%} of the cases pass")
    return wrong + (compare(name, facts["heard"], report) if mode.tool else [])


def compare(name: str, heard: dict[str, int], report: Path) -> list[str]:
    """Hold the report against what the checking tool counted."""
    sys.path.insert(0, str(ROOT / "src"))
    from warplens.report import open as open_report

    single = ("sample_int64", "sample_float64", "sample", "no_value")
    with open_report(report) as opened:
        rows = {
            table: opened.sql(f"SELECT count(*) AS n FROM {table}").to_pylist()[0]["n"]
            for table in opened.tables
        }
        counters = (
            opened.sql("SELECT count(*) AS n FROM nvtx_counter_samples").to_pylist()[0]["n"] if single else 0
        )
        complaints = opened.sql("SELECT code, message FROM diagnostics WHERE severity <> 'info'").to_pylist()
    wrong = [f"{name}: the report says {row['code']}: {row['message']}" for row in complaints]
    expected = {"nvtx_ranges": heard["push"] + heard["start"], "nvtx_marks": heard["mark"]}
    for table, count in expected.items():
        if rows[table] != count:
            wrong.append(f"{name}: {table} has {rows[table]} rows, the program made {count}")
    least = sum(heard[kind] for kind in single)  # batches and structured samples give more rows
    if counters < least:
        wrong.append(f"{name}: nvtx_counter_samples has {counters} rows, the program made at least {least}")
    print(f"{name}: recorded {rows}")
    return wrong


def main() -> int:
    """Run the chosen tests and print the failures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "modes",
        nargs="*",
        metavar="MODE",
        help=", ".join(f"{name} ({mode.what})" for name, mode in MODES.items()),
    )
    parser.add_argument(
        "-k", dest="part", help="only the cases that match, as pytest's -k; counts are then not checked"
    )
    options = parser.parse_args()
    unknown = sorted(set(options.modes) - set(MODES))
    if unknown:
        parser.error(f"no mode {', '.join(unknown)}; there are: {', '.join(MODES)}")
    upstream, oracle = fetch(), build_oracle()
    words = ["-k", options.part, "--continue-on-collection-errors"] if options.part else []
    wrong = [line for name in options.modes or MODES for line in run(name, upstream, oracle, words)]
    for line in wrong:
        print(f"upstream tests: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
