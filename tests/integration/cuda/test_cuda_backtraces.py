"""`--cudabacktrace` on the look-alike libcuda: long calls have the stack that led to them, short ones and others have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.native.fake_cuda import DEFAULT, FakeCuda, violations
from tests.support.programs.launching import environment, warplens
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("gcc", "native"), pytest.mark.timeout(300)]
KERNEL, SYNC = "cudaLaunchKernel", "cudaStreamSynchronize"
# The second wait has nothing to wait for; the first takes most of a second, on any machine.
WORDS = ("kernel:work:300000000:1:3", "sync:1", "h2d:4096:1", "sync:1")


def stacks(folder: Path, target: Target, chosen: str, *words: str) -> dict[str, list[list[str]]]:
    """The functions of the stack of each call, innermost first; an empty list where there is none."""
    fake = FakeCuda(DEFAULT)
    log = folder / "log"
    env = environment(
        **fake.environment(traps="", log=log, truth=folder / "truth"), TRUTH=str(folder / "said")
    )
    program = target("cuda_program", *fake.words(), "-fno-inline", "-g")
    done = warplens(
        "profile",
        "--light",
        "-q",
        "-o",
        "x",
        "-t",
        "cuda",
        "-s",
        "none",
        f"--cudabacktrace={chosen}",
        program,
        *words,
        cwd=folder,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    assert violations(log) == []
    found: dict[str, list[list[str]]] = {}
    with open_report(folder / "x.warplens") as report:
        frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
        for call in report.table("cuda_api").to_pylist():
            names, at = [], call["stack"]
            while at is not None:
                names.append(str(frames[at]["function"]))
                at = frames[at]["parent"]
            found.setdefault(call["name"].partition("_v")[0], []).append(names)
    return found


def test_calls_that_take_long_have_their_stack(target: Target, tmp_path: Path) -> None:
    found = stacks(tmp_path, target, "sync:10000000", *WORDS)
    long = [names for names in found.pop(SYNC) if names]
    assert long
    assert all("main" in names for names in long), long
    assert all(names == [] for calls in found.values() for names in calls)


def test_every_call_of_a_kind_where_no_time_is_too_short(target: Target, tmp_path: Path) -> None:
    found = stacks(tmp_path, target, "kernel:0", *WORDS)
    assert len(found[KERNEL]) == 3
    assert all("main" in names for names in found[KERNEL]), found
    assert found[SYNC] == [[], []]


def test_cudabacktrace_none_records_no_stack(target: Target, tmp_path: Path) -> None:
    assert all(names == [] for calls in stacks(tmp_path, target, "none", *WORDS).values() for names in calls)
