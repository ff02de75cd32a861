"""After the program: what goes wrong is said, and nothing of it becomes the exit code."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warplens import report as query
from warplens.cli import finishing
from warplens.cli.finish_report import finish_report
from warplens.cli.finishing import progress_bar
from warplens.convert import finish as converting
from warplens.errors import ReportError
from warplens.handover import pending


def _finish(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch, what: str = "finish"
) -> bool:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(query if what == "open" else converting, what, fail)
    return finish_report(pending.begin("x.warplens", "spool"), quiet=False)


@pytest.mark.parametrize(
    ("error", "said"), [(ReportError("no space"), "no space"), (RuntimeError("odd"), "RuntimeError: odd")]
)
def test_a_failed_finish_prints_its_reason(
    error: Exception,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not _finish(tmp_path, error, monkeypatch)
    assert said in capsys.readouterr().err


def test_without_a_summary_the_report_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _finish(tmp_path, ReportError("odd"), monkeypatch, "open")
    assert "x.warplens is finished, but cannot be summed up: odd" in capsys.readouterr().err


def test_an_overwritten_report_prints_no_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def overwrite(report: Path) -> None:
        shutil.rmtree(report)
        raise ReportError("it is gone")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(query, "open", overwrite)
    assert finish_report(pending.begin("x.warplens", "spool"), quiet=False)
    assert (
        "x.warplens was finished, and has been removed or overwritten since.\n  Name another"
        in capsys.readouterr().err
    )


def test_without_a_terminal_there_is_no_progress_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(finishing, "_PATIENCE_S", 0.0)
    with progress_bar() as progress:
        progress("decode", 0.5)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_a_bar_on_a_terminal_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setattr(finishing, "_PATIENCE_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar() as progress:
        progress("decode", 0.5)
        progress("write", 1.0)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "write" in captured.err
    assert captured.err.rstrip().endswith("\x1b[2K")


def test_waiting_for_the_report_loads_no_package() -> None:
    loads = "import sys, warplens.cli.finishing; print(sys.modules.keys() & {'numpy', 'pyarrow'})"
    done = subprocess.run([sys.executable, "-c", loads], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
