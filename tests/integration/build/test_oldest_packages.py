"""The oldest version of each package that pyproject.toml allows is enough: the reader's own unit tests, and a recording, with those alone.

The newest are those of `.venv`, with which all other tests run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
READER = [f"tests/unit/{name}" for name in ("analysis", "timeline", "report", "stats", "exporters", "importers", "flows", "viewer", "cli")]
# With a version of its time a package may use what a newer Python warns of.
_WORDS = ["-q", "-p", "no:cacheprovider", "-m", "not slow and not exhaustive", "-W", "ignore::DeprecationWarning"]
# Before 15, rich may leave out the last step of a bar that was short: nothing that a user misses.
_WORDS += ["--deselect", "tests/unit/cli/test_finishing.py::test_a_bar_on_a_terminal_is_gone_at_the_end"]

pytestmark = [pytest.mark.require("oldest-packages", "native"), pytest.mark.timeout(900)]


def _run(*command: object, cwd: Path = ROOT) -> str:
    # That environment lacks most optional pieces on purpose: there their tests may be skipped, whatever CI requires here.
    environment = {name: value for name, value in os.environ.items() if name != "WARPLENS_REQUIRE"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-6000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of build/oldest, which is made anew where pyproject.toml has changed."""
    return Path(_run(sys.executable, ROOT / "tools" / "oldest.py").splitlines()[-1])


def test_unit_tests_of_the_reader_pass(python: Path, tmp_path: Path) -> None:
    printed = _run(python, "-m", "pytest", *_WORDS, f"--basetemp={tmp_path}", *READER)
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None
    assert int(passed[1]) > 1000, printed[-500:]


def test_a_recording_is_finished_and_summed_up(python: Path, tmp_path: Path) -> None:
    program = "from warplens import nvtx\nfor n in range(3):\n    with nvtx.annotate('step', payload=n): pass\n"
    _run(python, "-m", "warplens", "profile", "--light", "-q", "-o", "run", "--", python, "-c", program, cwd=tmp_path)
    table = _run(python, "-m", "warplens", "stats", "-r", "nvtx_sum", "-f", "csv", "run.warplens", cwd=tmp_path)
    assert re.search(r"step", table), table
    listed = _run(python, "-m", "warplens", "query", "-f", "csv", "run.warplens", "SELECT count(*) FROM nvtx_ranges", cwd=tmp_path)
    assert listed.split()[-1] == "3"
