"""What a name means, and who may read it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warplens.errors import ReportError
from warplens.handover.naming import check_readable

NOBODY = 65534


@pytest.fixture
def report() -> Iterator[Path]:
    """A report in a folder that everybody may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="warplens-test-"))
    folder.chmod(0o755)
    path = folder / "run.warplens"
    (path / "manifest.d").mkdir(parents=True)
    (path / "tables").mkdir()
    path.chmod(0o755)
    yield path
    shutil.rmtree(folder)


def _as_nobody(what: Callable[[], object]) -> str:
    """Run in a process without rights; return what it complains of."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(NOBODY)
            what()
        except ReportError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with open(read, "rb") as file:
        return file.read().decode()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("closed", ["", "manifest.d", "tables"])
def test_a_report_that_may_not_be_read_says_so(report: Path, closed: str) -> None:
    assert _as_nobody(lambda: check_readable(report)) == ""
    (report / closed).chmod(0o700)
    message = _as_nobody(lambda: check_readable(report.with_suffix("")))
    assert "You may not read the report" in message
    assert f"no permission for {report / closed}" in message


def test_a_missing_report_passes_the_check(tmp_path: Path) -> None:
    check_readable(tmp_path / "nothing")
    check_readable(tmp_path)
