"""A program alone, and the same program with everything of the CPU side switched on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.support.programs.launching import COMMAND, environment
from warplens.report import open as open_report

EVERYTHING = (
    "-t",
    "nvtx,osrt,gc,gil,import,python-events",
    "--sample=process-tree",
    "--python-sampling=true",
    "--osrt-file-access",
)
LONG_S = 240  # on a machine that does much else
Done = subprocess.CompletedProcess[str]


def both(folder: Path, *words: str | Path, env: dict[str, str] | None = None) -> tuple[Done, Done, Path]:
    """Run a program without us and with us; how both went, and the report."""
    command = [str(word) for word in words]
    options: dict[str, Any] = {
        "cwd": folder,
        "env": env or environment(),
        "text": True,
        "capture_output": True,
        "timeout": LONG_S,
    }
    bare = subprocess.run(command, check=False, **options)
    with_us = subprocess.run(
        [*COMMAND, "profile", "--light", "-q", "-f", "-o", "seen", *EVERYTHING, "--", *command],
        check=False,
        **options,
    )
    return bare, with_us, folder / "seen.warplens"


def counts(report: Path) -> dict[str, int]:
    """How much there is of everything."""
    with open_report(report) as opened:
        return {
            name: opened.table(name).num_rows
            for name in ("osrt", "file_access", "samples", "gil", "gc", "imports", "processes")
        }


def same(bare: Done, with_us: Done) -> None:
    """Same exit code, same output."""
    assert (with_us.returncode, with_us.stdout) == (bare.returncode, bare.stdout), with_us.stderr
    assert with_us.stderr == bare.stderr
