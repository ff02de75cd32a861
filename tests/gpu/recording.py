"""Programs recorded on a real GPU, and their reports read as any tool reads them: the machine needs no more than pyarrow."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Row = dict[str, Any]


@dataclass(frozen=True)
class Recorded:
    """A finished program and its report."""

    report: Path
    done: subprocess.CompletedProcess[str]

    def table(self, name: str) -> list[Row]:
        """All rows of a table, of all parts."""
        parquet = pytest.importorskip("pyarrow.parquet")
        rows: list[Row] = parquet.read_table(self.report / "tables" / name).to_pylist()
        return rows

    def diagnostics(self, *codes: str) -> list[Row]:
        """Rows of the diagnostics, those with `codes` or all that are warnings or errors."""
        rows = self.table("diagnostics")
        return [row for row in rows if (row["code"] in codes if codes else row["severity"] != "info")]


def run(
    program: str, folder: Path, *words: str, status: int | None = 0, timeout: float = 280
) -> subprocess.CompletedProcess[str]:
    """Run Python text without recording it, as `record` does."""
    (folder / "program.py").write_text(program)
    return _run([sys.executable, "program.py", *words], folder, status, timeout)


def record(
    program: str | Sequence[str],
    folder: Path,
    *options: str,
    words: Sequence[str] = (),
    status: int | None = 0,
    timeout: float = 280,
) -> Recorded:
    """Profile Python text or a command line in `folder` with options of `warplens profile`; its status is checked unless None."""
    if isinstance(program, str):
        (folder / "program.py").write_text(program)
        program = [sys.executable, "program.py", *words]
    command = [
        sys.executable,
        "-m",
        "warplens",
        "profile",
        "--light",
        "-f",
        "-o",
        "run",
        *options,
        "--",
        *program,
    ]
    return Recorded(folder / "run.warplens", _run(command, folder, status, timeout))


def environment() -> dict[str, str]:
    """Our variables, with the package of this checkout first."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])),
    }


def _run(
    command: Sequence[str], folder: Path, status: int | None, timeout: float
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        list(command),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if status is not None:
        assert done.returncode == status, f"{done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def launched(recorded: Recorded) -> list[tuple[Row, Row]]:
    """Kernels with the API calls that launched them; a kernel without one fails the test."""
    calls = {row["id"]: row for row in recorded.table("cuda_api")}
    return [(row, calls[row["api"]]) for row in recorded.table("kernels")]


def bare(name: str) -> str:
    """A kernel's name without its type, arguments and templates, which demanglers write differently."""
    return re.split(r"[<(]", re.sub(r"^void ", "", name).replace("(anonymous namespace)", "anonymous"))[0]


def broken_numba() -> str | None:
    """Why Numba-CUDA cannot compile here; None where it can. Its 0.30 fails with NumPy 2.5, which has no row_stack."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # else pytest makes Numba's warnings of NumPy errors
            importlib.import_module("numba.cuda.np.arrayobj")
    except Exception as error:
        return f"Numba-CUDA does not work here: {error}"
    return None
