"""warplens.nvtx in a Python without a GIL: it stays off, and nothing that threads annotate at once is lost or mixed up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import SOURCES
from tests.support.native.native_build import ROOT, build_binding
from tests.support.programs.launching import warplens
from tests.support.programs.python_running import free_threaded
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native", "g++", "free-threaded-python"), pytest.mark.timeout(600)]
each_python = pytest.mark.parametrize("python", free_threaded() or ["python3.14t"])
THREADS, ROUNDS = 8, 200
AGENT = ROOT / "src" / "warplens" / "_lib" / "libwarplens_agent.so"

Package = Callable[[str], Path]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """The folder of a package with a binding for an interpreter."""
    made: dict[str, Path] = {}

    def folder(python: str) -> Path:
        if python not in made:
            made[python] = tmp_path_factory.mktemp("package")
            build_binding(made[python], ("-O1",), python)
        return made[python]

    return folder


@each_python
def test_the_gil_stays_off(python: str, package: Package) -> None:
    """CPython would warn of a module that needs it."""
    code = (
        "import sys, warplens.nvtx as nvtx\nfrom warplens.nvtx import _binding\nprint(sys._is_gil_enabled())"
    )
    environment = os.environ | {"PYTHONPATH": str(package(python))}
    done = subprocess.run(
        [python, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


@each_python
def test_all_that_threads_annotate_at_once_is_there(
    python: str, package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        "env",
        f"PYTHONPATH={package(python)}",
        python,
        str(SOURCES / "nvtx" / "nvtx_at_once.py"),
        str(THREADS),
        str(ROUNDS),
    )
    done = warplens("profile", "-o", "x", "-t", "nvtx", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "False"), done.stderr
    each = THREADS * ROUNDS
    with open_report(tmp_path / "x.warplens") as report:
        names = "regexp_replace(message, ' .*', '')"
        counts = report.sql(
            f"SELECT {names} AS name, count(*) AS n, count(DISTINCT thread) AS threads FROM nvtx_ranges GROUP BY 1 ORDER BY 1"
        )
        assert [tuple(row.values()) for row in counts.to_pylist()] == [
            (name, each, THREADS) for name in ("constant", "decorated", "message", "shared", "started")
        ]
        said = "SELECT message, domain, category, count(*) AS n FROM nvtx_ranges WHERE message LIKE 'message %' GROUP BY ALL"
        assert {
            (row["message"], row["domain"], row["category"], row["n"]) for row in report.sql(said).to_pylist()
        } == {(f"message {i}", f"domain {i % 20}", f"category {i % 7}", THREADS) for i in range(ROUNDS)}
        both = (
            "FROM nvtx_ranges AS inner_one JOIN nvtx_ranges AS outer_one ON inner_one.parent = outer_one.id"
        )
        inside = f"SELECT count(*) AS n {both} WHERE inner_one.message = 'decorated' AND outer_one.message = 'constant'"
        assert report.sql(inside).to_pylist() == [{"n": each}]
        assert report.table("nvtx_marks").num_rows == each
        assert report.sql("SELECT count(*) AS n FROM nvtx_counter_samples").to_pylist() == [{"n": each}]


@each_python
def test_random_calls_from_many_threads_do_not_crash(python: str, package: Package, tmp_path: Path) -> None:
    """Every function with any argument: nothing crashes, and nothing waits for ever."""
    environment = os.environ | {
        "PYTHONPATH": str(package(python)),
        "WARPLENS_SPOOL": str(tmp_path),
        "NVTX_INJECTION64_PATH": str(AGENT),
    }
    words = [python, "-X", "faulthandler", str(SOURCES / "nvtx" / "nvtx_anything.py"), "5", "400", "7"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("done ")


_FORKS = """
import os, threading, warnings
import warplens.nvtx as nvtx
warnings.simplefilter("ignore")
over = False
def annotate(number):
    i = 0
    while not over:
        i += 1
        with nvtx.annotate(f"in thread {i % 90}", domain=f"d{i % 9}", payload={"i": i}): pass
threads = [threading.Thread(target=annotate, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for number in range(20):
    child = os.fork()
    if child == 0:
        with nvtx.annotate("in child", domain="d1", payload={"i": number}, category="c"): pass
        os._exit(7)
    assert os.waitpid(child, 0)[1] == 7 << 8
over = True
for thread in threads: thread.join()
print("done")
"""


@each_python
def test_children_annotate_whatever_their_parents_threads_were_at(
    python: str, package: Package, tmp_path: Path
) -> None:
    words = ("env", f"PYTHONPATH={package(python)}", python, "-c", _FORKS)
    done = warplens("profile", "-o", "x", "-t", "nvtx", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "done"), done.stderr
    with open_report(tmp_path / "x.warplens") as report:
        assert report.sql("SELECT count(*) AS n FROM nvtx_ranges WHERE message = 'in child'").to_pylist() == [
            {"n": 20}
        ]
