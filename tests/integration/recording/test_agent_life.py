"""How the agent lives in a process: begun and ended by hand, beside forks, signal handlers and allocators that annotate."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.optional_dependencies import LIB
from tests.support.reports.raw_spool import read_all

pytestmark = pytest.mark.require("gcc")
AGENT = LIB / "libwarplens_agent.so"
IN_SIGNAL = 30


def run(*command: str | Path, spool: Path | None = None) -> list[str]:
    """Run with the agent, and return the lines of stdout. A lock that is held for ever ends in TimeoutExpired."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WARPLENS_")}
    environment["NVTX_INJECTION64_PATH"] = str(AGENT)
    if spool is not None:
        environment["WARPLENS_SPOOL"] = str(spool)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def folders(tmp_path: Path, count: int) -> list[Path]:
    made = [tmp_path / str(number) for number in range(count)]
    for folder in made:
        folder.mkdir()
    return made


def test_several_recordings_in_one_process(tmp_path: Path, target: Target) -> None:
    program = target("nvtx_life")
    into = folders(tmp_path, 3)
    lines = run(program, "restart", *into)
    assert lines == ["stop 2", "push -2", *["start 0 again 16", "stop 0"] * 3, f"attached {program}", "done"]
    for number, folder in enumerate(into):
        (spool,) = read_all(folder)
        assert spool.end_ns > spool.process["start_ns"]
        assert not spool.dropped
        assert not spool.error
        early = "registered early" if number == 0 else "registered between"
        assert spool.names("range") == [early, *[f"recording {number}"] * 3000]
        domains = {
            record.name: record.fields["domain"] for record in spool.records if record.kind == "domain"
        }
        assert domains == {"early": 1} | {f"recording {i}": 2 + i for i in range(number + 1)}
        assert [
            (record.name, record.fields["category"]) for record in spool.records if record.kind == "category"
        ] == [("named early", 3)]
        (mark,) = [record for record in spool.records if record.kind == "mark"]
        assert (mark.name, mark.fields["domain"]) == (early, 2 + number)
        assert [record.name for record in spool.open] == ["left open", "left running"]
        assert not spool.names("start_end")  # an end of a range of an earlier recording ends nothing


def test_begin_and_end_while_threads_annotate(tmp_path: Path, target: Target) -> None:
    into = folders(tmp_path, 12)
    assert run(target("nvtx_life"), "busy", *into) == ["0 0"] * len(into) + ["done"]
    for folder in into:
        (spool,) = read_all(folder)
        assert spool.end_ns
        assert not spool.error
        assert not spool.dropped
        assert all(record.name for record in spool.records if record.kind in ("range", "start_end"))


def test_fork_of_a_recording_begun_by_hand(tmp_path: Path, target: Target) -> None:
    into = folders(tmp_path, 2)
    assert run(target("nvtx_life"), "fork", *into) == [
        "start 0",
        "child: start 16 stop 0 start 0",
        "stop 0",
        "done",
    ]
    parent, child = read_all(into[0])
    assert (parent.names("range"), parent.open) == (["outer"], [])
    assert (child.names("range"), [record.name for record in child.open]) == (["child"], ["outer"])
    assert child.process["fork_ns"]
    assert child.end_ns
    (alone,) = read_all(into[1])
    assert (alone.process["pid"], alone.process["fork_ns"]) == (child.process["pid"], 0)
    assert (alone.names("range"), alone.open) == (["child alone"], [])


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_fork_handler_that_waits_for_a_thread_that_annotates(
    when: str, tmp_path: Path, target: Target
) -> None:
    assert run(target("nvtx_life"), "join", when, spool=tmp_path) == ["child 0", "done"]
    parent, child = read_all(tmp_path)
    assert {"first", "in the fork handler", "parent"} <= set(parent.names("range"))
    assert child.names("range") == ["in the child's fork handler", "child"]
    assert [record.name for record in child.open if record.thread == 0] == ["parent"]


def test_signal_handlers_that_annotate_among_forks_and_ends_of_threads(
    tmp_path: Path, target: Target
) -> None:
    assert run(target("nvtx_life"), "storm", "300", spool=tmp_path) == ["done"]
    parent, *children = read_all(tmp_path)
    threads = {name for name in parent.names("range") if name and name.startswith("thread ")}
    assert len(threads) == 300 * 3 * 50
    assert len(children) == 300 // 8 + 1
    assert any(name and name.startswith("handler ") for name in parent.names("range"))
    for spool in (parent, *children):
        assert set(spool.dropped) <= {IN_SIGNAL}
    for spool in children:
        assert {f"thread -1 {i}" for i in range(50)} <= set(spool.names("range"))


def test_an_allocator_that_annotates(tmp_path: Path, target: Target) -> None:
    (line,) = run(target("nvtx_malloc"), spool=tmp_path)
    nested, annotated = map(int, line.split()[1::2])
    (spool,) = read_all(tmp_path)
    assert nested == 0  # the agent asked it for nothing
    assert len(spool.names("range")) == len(spool.names("start_end")) == annotated > 3 * 2 * 1999
    assert not spool.dropped


def test_a_fork_while_another_thread_loads_the_agent(tmp_path: Path, target: Target) -> None:
    tool = target("nvtx_init_fork", "-DTOOL", "-shared", "-fPIC")
    environment = os.environ | {"WARPLENS_SPOOL": str(tmp_path), "WARPLENS_NVTX_CHAIN": str(tool)}
    done = subprocess.run(
        [target("nvtx_init_fork"), AGENT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "slow\n")
