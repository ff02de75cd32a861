"""Runs in a process of its own: finishes recordings with a kill at every step, then opens the report again.

Every file-system step of the finisher is an audit event of Python; the finisher is a fork that kills itself at the n-th.
Prints one JSON line per n until a finisher came through alive.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.unit.convert.recording import recording
from warplens.convert.finish import finish, snapshot
from warplens.handover import pending
from warplens.report import open as open_report

STEPS = frozenset(
    {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "shutil.move", "shutil.rmtree"}
)


def started(work: Callable[[], None]) -> int:
    """Run `work` in a fork; return its process id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def ended(child: int) -> int:
    """Wait for a fork; return 0, 1 for an exception, or -9 for a kill."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(work: Callable[[], None]) -> int:
    """Run `work` in a fork and wait for it."""
    return ended(started(work))


def open_and_close(report: Path) -> None:
    """Open the report, which finishes what is pending."""
    open_report(report).close()


def finish_with_a_kill(note: pending.Pending, report: Path, step: int, keep_raw: bool) -> None:
    """Finish, killing this process at the given step."""
    die_at(report, step)
    finish(note, report, keep_raw=keep_raw)


def die_at(report: Path, step: int) -> None:
    """Kill this process at the given step inside `report`'s parent directory."""
    left = step

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        if event in STEPS and str(args[0]).startswith(str(report.parent)):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(hook)


def write_snapshot(note: pending.Pending, report: Path) -> None:
    """Write a snapshot, or find the report finished."""
    snapshot(note, report)


def snapshot_with_a_kill(note: pending.Pending, report: Path, step: int) -> None:
    """Write a second snapshot, killing this process at the given step."""
    die_at(report, step)
    snapshot(note, report)


def facts(report: Path, spool: Path) -> None:
    """Open the report and print what there is."""
    with open_report(report) as opened:
        print(
            json.dumps(
                {
                    "rows": opened.tables,
                    "ids": opened.table("nvtx_ranges", ["id"]).column(0).to_pylist(),
                    "parts": [manifest.part for manifest in opened.manifests],
                    # not rglob: other commands may be removing folders
                    "left": sorted(
                        name for _, _, names in os.walk(report) for name in names if ".tmp" in name
                    ),
                    "spool": spool.exists(),
                    "raw": len(list(report.glob("raw/*/*.spool"))),
                    "pending": [note.id for note in pending.listed(report)],
                }
            ),
            flush=True,
        )


def main(folder: Path, keep_raw: bool, at_once: int, stride: int, live: bool) -> None:
    """Kill at every `stride`-th step in turn; `at_once` commands open the report afterwards, all at the same time.

    `live`: the one killed writes a snapshot, after another one; and while the report is finished, others try to write one.
    """
    step = 0
    while True:
        report, spool = folder / f"{step}.warplens", folder / f"spool{step}" / "one"
        note = pending.adopt(report, recording(spool, launch={}), "one")
        if live:
            snapshot(note, report)
            killed = forked(partial(snapshot_with_a_kill, note, report, step))
        else:
            killed = forked(partial(finish_with_a_kill, note, report, step, keep_raw))
        assert killed in (0, -signal.SIGKILL), killed
        others = [
            started(partial(write_snapshot, note, report) if live else partial(open_and_close, report))
            for _ in range(at_once - 1)
        ]
        assert forked(partial(facts, report, spool)) == 0
        assert [ended(child) for child in others] == [0] * len(others)
        shutil.rmtree(report)
        if killed == 0:
            return
        step += stride


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "keep", int(sys.argv[3]), int(sys.argv[4]), sys.argv[2] == "live")
