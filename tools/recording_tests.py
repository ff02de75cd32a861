"""Runs the `recording` tests of tools/run_tests.py with each CPython, and stores the results.

usage: PYTHON tools/recording_tests.py [here] [free-threaded] [unstable] [--only 3.12,3.15] [--brief | --keep]

`here` are the CPythons of this machine, `free-threaded` those of them without a GIL, which tools/free_threaded.py builds first,
`unstable` those of Debian's unstable in build/unstable (tools/unstable.py). Each gets an environment and a build, but free-threaded
ones: DuckDB, which reads reports, has no release for them, so this Python runs those tests that record programs of theirs. The results
are in build/recorded/results.json, for as long as the sources are the same; `--keep` writes them into tests/tested_pythons.json, from
which `make docs` makes the table of tested versions. Exits with 2 where tests failed, with 3 where nothing could run. Only the standard
library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import free_threaded
import unstable
from pythons import named, pythons

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "recorded"
RESULTS = FOLDER / "results.json"
KEPT = ROOT / "tests" / "tested_pythons.json"
# What the results depend on, but for what is made of them.
AREAS = ("src/", "native/", "tests/", "tools/", "pyproject.toml", "CMakeLists.txt", "Makefile")
NEEDED = "native,gcc,pip"  # pieces whose absence would turn the tests into skips
LIMIT_S = 1800
# What `--brief` leaves out of all but the newest CPython of a place: most of the time, and the least that differs between versions.
ALIKE = "not (recording and test_profile.py or test_perf.py or test_os_calls.py or test_record_survival.py or test_cpu_stats.py)"
FAILED = 2  # exit status: tests failed; this tool did not


@dataclass
class Result:
    """How the tests went with one CPython."""

    version: str
    system: str
    passed: int
    skipped: int
    failed: list[str]
    unsteady: list[str]
    seconds: int


def digest() -> str:
    """What tells these sources from others."""
    whole = hashlib.sha256()
    for name in sorted(unstable.sources()):
        if name.startswith(AREAS) and ROOT / name != KEPT:
            whole.update(f"{name}\0".encode() + (ROOT / name).read_bytes() + b"\0")
    return whole.hexdigest()


def results() -> dict[str, Result]:
    """The results that were kept of these sources, by the name of the CPython."""
    if not RESULTS.exists():
        return {}
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    return (
        {name: Result(**facts) for name, facts in kept["pythons"].items()}
        if kept["sources"] == digest()
        else {}
    )


def read(report: Path, status: int, printed: str, version: str, system: str, seconds: float) -> Result:
    """Sum up a report of pytest. What failed and passed when it ran again has passed, and is unsteady."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    told = {
        part: [case for case in cases if case.find(part) is not None]
        for part in ("failure", "error", "skipped")
    }
    failed = sorted(
        {f"{case.get('classname')}::{case.get('name')}" for case in [*told["failure"], *told["error"]]}
    )
    unsteady = failed if status == 0 else []
    if status != 0 and not failed:
        failed = [
            f"pytest ended with {status}: {printed.strip().splitlines()[-1] if printed.strip() else 'it said nothing'}"
        ]
    passed = len(cases) - len(told["skipped"]) - (0 if unsteady else len(failed))
    return Result(
        version, system, passed, len(told["skipped"]), [] if unsteady else failed, unsteady, round(seconds)
    )


def system_of(release: Path) -> str:
    """The name of the system, as its os-release says."""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', release.read_text(encoding="utf-8"), re.MULTILINE)
    return name[1] if name else "Linux"


@dataclass
class Place:
    """Where tests run: this machine, or the root file system.

    Of its CPythons, those whose names end with `suffix`.
    """

    inside: bool
    suffix: str = ""

    @property
    def checkout(self) -> Path:
        """Where the files of that place are seen from here."""
        return unstable.SYSTEM / unstable.CHECKOUT.lstrip("/") if self.inside else ROOT

    @property
    def system(self) -> str:
        """What system it is."""
        return system_of((unstable.SYSTEM if self.inside else Path("/")) / "etc/os-release")

    def pythons(self) -> dict[str, str]:
        """Its CPythons."""
        there = (
            unstable.pythons()
            if self.inside
            else {named(version): str(path) for version, path in pythons().items()}
        )
        return {name: path for name, path in there.items() if name.endswith(self.suffix)}

    def run(self, *command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command in its checkout."""
        if self.inside:
            return unstable.inside(
                command, folder=unstable.CHECKOUT, environment=environment, timeout=LIMIT_S, quiet=True
            )
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WARPLENS_")}
        out = subprocess.PIPE
        return subprocess.run(
            command, cwd=ROOT, env={**kept, **environment}, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=LIMIT_S,
        )  # fmt: skip

    def make(self, target: str, name: str, python: str) -> subprocess.CompletedProcess[str]:
        """Make a target of the Makefile for one CPython: `venv`, its environment, or `native`, its build."""
        folder = f"build/recorded/{name}"
        (self.checkout / folder).mkdir(parents=True, exist_ok=True)
        apart = name.endswith("t")
        words = [] if apart else [f"PYTHON={python}", f"VENV={folder}/venv", f"BUILD={folder}/native"]
        return self.run("make", target, *words, environment={})

    def test(self, name: str, python: str, *, chosen: str = "") -> Result:
        """Build for one CPython, and run the tests with it: all, or those that the expression `chosen` selects."""
        began = time.monotonic()
        folder = f"build/recorded/{name}"
        report = f"{folder}/junit.xml"
        made = self.make("native", name, python)
        (self.checkout / report).unlink(missing_ok=True)
        apart = name.endswith("t")
        version = self.run(
            python, "-c", "import platform; print(platform.python_version())", environment={}
        ).stdout.strip()
        if made.returncode != 0:
            print(made.stdout[-4000:])
            return Result(version, self.system, 0, 0, ["make native"], [], round(time.monotonic() - began))
        venv = ".venv" if apart else f"{folder}/venv"
        chosen = name if apart else chosen
        words = [
            f"{venv}/bin/python",
            "tools/run_tests.py",
            "recording",
            "--",
            *(["-k", chosen] if chosen else []),
            f"--junitxml={report}",
        ]
        done = self.run(*words, environment={"WARPLENS_PYTHONS": name, "WARPLENS_REQUIRE": NEEDED})
        (FOLDER / f"{name}.log").write_text(made.stdout + done.stdout, encoding="utf-8")
        if not (self.checkout / report).exists():
            print(done.stdout[-4000:])
            return Result(version, self.system, 0, 0, ["pytest"], [], round(time.monotonic() - began))
        return read(
            self.checkout / report,
            done.returncode,
            done.stdout,
            version,
            self.system,
            time.monotonic() - began,
        )


def keep(found: dict[str, Result]) -> None:
    """Write those that passed into the file that the docs are made of.

    A version that was there and did not run now stays.
    """
    known = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name, result in found.items():
        known.pop(name, None)
        if not result.failed:
            known[name] = {
                "version": result.version,
                "system": result.system,
                "passed": result.passed,
                "skipped": result.skipped,
            }
    order = sorted(known, key=lambda name: (int(name.rstrip("t")[2:]), name))
    KEPT.write_text(json.dumps({name: known[name] for name in order}, indent=1) + "\n", encoding="utf-8")


def places(names: list[str]) -> list[Place]:
    """The places that were asked for and are there."""
    found = []
    if "free-threaded" in names:
        free_threaded.make()
    if "here" in names:
        found.append(Place(inside=False))
    elif "free-threaded" in names:
        found.append(Place(inside=False, suffix="t"))
    if "unstable" in names:
        try:
            unstable.make(())
            unstable.copy_checkout()
            found.append(Place(inside=True))
        except (unstable.Lacking, subprocess.TimeoutExpired) as reason:
            print(f"recording tests: no root file system of Debian's unstable: {reason}", file=sys.stderr)
    return found


def main() -> int:
    """Run what the command line asks, and say in a line each how it went."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "places", nargs="*", metavar="here|free-threaded|unstable", default=["unstable", "free-threaded"]
    )
    parser.add_argument("--only", default="", metavar="VERSIONS", help="these CPythons alone, as 3.12,3.15")
    parser.add_argument(
        "--keep", action="store_true", help="write the results into tests/tested_pythons.json"
    )
    parser.add_argument(
        "--brief",
        action="store_true",
        help="all tests with the newest CPython of a place, fewer with the others",
    )
    words = parser.parse_args()
    only = words.only.split(",") if words.only else []
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources, found = digest(), results()
    ran = 0
    for place in places(words.places):
        there = place.pythons()
        # Environments are made one after the other, beside the tests of the CPythons before: they mostly wait for packages.
        environments = ThreadPoolExecutor(1)
        made = {
            name: environments.submit(place.make, "venv", name, python)
            for name, python in there.items()
            if not only or name in only
        }
        for name, environment in made.items():
            is_newest = name == max(there, key=lambda one: int(one.rstrip("t")[2:]))
            python = there[name]
            try:
                environment.result()  # what failed there, `make native` tells
                result = place.test(name, python, chosen=ALIKE if words.brief and not is_newest else "")
            except subprocess.TimeoutExpired as late:
                result = Result(name, place.system, 0, 0, [str(late)[-200:]], [], LIMIT_S)
            found[name] = result
            ran += 1
            kept = {"sources": sources, "pythons": {name: asdict(result) for name, result in found.items()}}
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            if words.keep:
                keep(found)
            counts = f"{result.passed} passed, {len(result.failed)} failed, {result.skipped} skipped"
            print(f"CPython {result.version} on {result.system}: {counts}, {result.seconds} s", flush=True)
            for said in (
                *(f"failed: {test}" for test in result.failed),
                *(f"unsteady: {test}" for test in result.unsteady),
            ):
                print(f"  {said}", flush=True)
    if words.keep and not ran:
        keep(found)
    if not ran:
        return unstable.LACKING
    return FAILED if any(result.failed for result in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
