"""Two users of one machine: what one records the other cannot read, and what one prepares the other does not walk into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from warplens.testing.timeline import timeline

OTHER = 65534
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root, with setpriv, can be two users"
)


def as_other(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def warplens(*words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "warplens", *words],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may enter and write to, as /tmp is; those of pytest are its user's alone."""
    folder = Path(tempfile.mkdtemp(prefix="warplens-users-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("end", ["true", "kill -9 $PPID"], ids=["finished", "unfinished"])
def test_other_users_cannot_read_a_report(end: str, shared: Path) -> None:
    warplens("profile", "-q", "--keep-raw", "-o", shared / "x", "sh", "-c", end)
    report = shared / "x.warplens"
    assert "x.warplens" in as_other("ls", shared).stdout
    assert as_other("find", report, "-type", "f").stdout == ""
    found = [path for path in report.rglob("*") if path.is_file()]
    assert found
    assert all(as_other("cat", path).returncode for path in found)


@pytest.mark.parametrize("name", ["warplens-imports-0", "warplens-0"])
def test_a_name_that_another_took_is_not_used(name: str, shared: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / ("0" * 16)).mkdir(parents=True)
    os.utime(mine / ("0" * 16), (0, 0))
    assert as_other("ln", "-s", mine, shared / name).returncode == 0
    (tmp_path / "t.json").write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    )
    places = {
        "TMPDIR": str(shared),
        "XDG_CACHE_HOME": "/proc/none",
        "XDG_RUNTIME_DIR": "/proc/none",
        "HOME": "/proc/none",
    }
    for words in (("stats", tmp_path / "t.json"), ("profile", "--light", "-q", "-o", tmp_path / "x", "true")):
        done = warplens(*words, **places)
        assert "Traceback" not in done.stderr
    assert [path.name for path in mine.iterdir()] == ["0" * 16]
    assert (shared / name).is_symlink()


def test_a_report_of_another_is_only_read(shared: Path) -> None:
    report = shared / "r.warplens"
    timeline(report, "main |[step ][step ]")
    subprocess.run(["chown", "-R", f"{OTHER}:{OTHER}", report], check=True)
    before = sorted(report.rglob("*"))
    for words in (("info", report), ("view", "--export", shared / "page.html", report)):
        done = warplens(*words, XDG_STATE_HOME=str(shared / "state"), XDG_CACHE_HOME=str(shared / "cache"))
        assert done.returncode == 0, done.stderr
    assert sorted(report.rglob("*")) == before
    assert list((shared / "cache" / "warplens" / "indexes").iterdir())
