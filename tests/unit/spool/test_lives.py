"""Who began, became another program and ended, told apart by the order of time alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.spool.lives import Life, fold, lives
from warplens.spool.registry import read_register
from warplens.testing.spool_writer import process_record as record


def told(folder: Path, *records: bytes, primary: int | None = 7) -> list[Life]:
    (folder / "processes.log").write_bytes(b"".join(records))
    return lives(read_register(folder).entries, primary)


def facts(life: Life) -> tuple[object, ...]:
    return (life.pid, life.began, life.command, life.start, life.end, life.ended, life.exit_status)


SHELL = record("program", 7, 1, 10, "/bin/sh", "sh", "-c", "x")


def test_a_program_that_ends(tmp_path: Path) -> None:
    (life,) = told(tmp_path, SHELL, record("exit", 7, 1, 20, status=3), record("waited", 7, 1, 25, status=3))
    assert facts(life) == (7, "launch", ("sh", "-c", "x"), 10, 20, "exit", 3)
    assert (life.executable, life.parent, life.foreign) == ("/bin/sh", None, None)


def test_a_killed_process_has_its_status_from_who_waited(tmp_path: Path) -> None:
    (life,) = told(tmp_path, SHELL, record("waited", 7, 1, 25, status=137))
    assert (life.end, life.ended, life.exit_status) == (25, "signal", 137)


def test_exit_code_137_is_no_signal(tmp_path: Path) -> None:
    (life,) = told(
        tmp_path, SHELL, record("exit", 7, 1, 20, status=137), record("waited", 7, 1, 25, status=137)
    )
    assert (life.ended, life.exit_status) == ("exit", 137)


def test_a_fork_child_goes_on_with_its_parents_program(tmp_path: Path) -> None:
    first, child = told(tmp_path, SHELL, record("fork", 8, 7, 12))
    assert facts(child) == (8, "fork", ("sh", "-c", "x"), 12, None, None, None)
    assert child.parent is first


def test_the_ranks_of_a_parent_are_its_fork_childrens(tmp_path: Path) -> None:
    _, child = told(
        tmp_path, record("program", 7, 1, 10, "/x", rank=3, local_rank=1), record("fork", 8, 7, 12)
    )
    assert (child.rank, child.local_rank) == (3, 1)


def test_fork_and_exec_are_one_spawn(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        SHELL,
        record("fork", 8, 7, 12),
        record("exec", 8, 7, 14, "/bin/ls", "ls"),
        record("program", 8, 7, 16, "/bin/ls", "ls", "-l"),
    )
    assert [life.began for life in found] == ["launch", "fork", "exec"]
    shell, spawned = fold(found, set())
    assert facts(spawned)[:4] == (8, "spawn", ("ls", "-l"), 12)
    assert spawned.parent is shell


def test_a_fork_child_that_recorded_stays(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        SHELL,
        record("fork", 8, 7, 12),
        record("exec", 8, 7, 14, "/x", "x"),
        record("program", 8, 7, 16, "/x", "x"),
    )
    _, child, other = fold(found, {id(found[1])})
    assert (child.end, child.ended, other.began, other.start, other.parent) == (14, "exec", "exec", 14, child)


def test_children_of_a_folded_fork_get_another_parent(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        SHELL,
        record("fork", 8, 7, 12),
        record("fork", 9, 8, 13),
        record("exec", 8, 7, 14, "/x", "x"),
        record("program", 8, 7, 16, "/x", "x"),
    )
    kept = fold(found, set())
    assert [life.pid for life in kept] == [7, 9, 8]
    assert kept[1].parent is kept[2]


def test_one_process_and_two_programs(tmp_path: Path) -> None:
    first, second = told(
        tmp_path,
        SHELL,
        record("exec", 7, 1, 14, "/y", "y"),
        record("program", 7, 1, 16, "/y", "y"),
        record("exit", 7, 1, 20, status=1),
    )
    assert facts(first) == (7, "launch", ("sh", "-c", "x"), 10, 14, "exec", None)
    assert facts(second) == (7, "exec", ("y",), 14, 20, "exit", 1)
    assert second.parent is first


def test_an_exec_that_failed_changes_nothing(tmp_path: Path) -> None:
    (life,) = told(
        tmp_path,
        SHELL,
        record("exec", 7, 1, 14, "/y", "y"),
        record("exec", 7, 1, 15, status=8),
        record("exit", 7, 1, 20, status=126),
    )
    assert facts(life) == (7, "launch", ("sh", "-c", "x"), 10, 20, "exit", 126)


def test_a_vfork_child_says_first_what_it_becomes(tmp_path: Path) -> None:
    first, child = told(
        tmp_path, SHELL, record("exec", 8, 7, 12, "/y", "y"), record("program", 8, 7, 14, "/y", "y", "1")
    )
    assert facts(child)[:4] == (8, "spawn", ("y", "1"), 12)
    assert (child.parent, child.foreign) == (first, None)


def test_a_vfork_child_that_could_not_become_it(tmp_path: Path) -> None:
    _, child = told(
        tmp_path,
        SHELL,
        record("exec", 8, 7, 12, "/y", "y"),
        record("exec", 8, 7, 13, status=13),
        record("exit", 8, 7, 14, status=127),
    )
    assert (child.foreign, child.exit_status, child.command) == (
        "could not be started: Permission denied",
        127,
        ("y",),
    )


@pytest.mark.parametrize(
    ("exit_time", "status", "foreign"),
    [
        (20, 1, "could not be started: No such file or directory"),  # at once
        (10**9, 127, "could not be started: No such file or directory"),  # on a busy machine
        (10**9, 1, None),  # it went on without that program
        (20, 0, None),
    ],
)
def test_a_fork_child_that_could_not_become_it(
    exit_time: int, status: int, foreign: str | None, tmp_path: Path
) -> None:
    _, child = told(
        tmp_path,
        SHELL,
        record("fork", 8, 7, 11),
        record("exec", 8, 7, 12, "/y", "y"),
        record("exec", 8, 7, 13, status=2),
        record("exit", 8, 7, exit_time, status=status),
    )
    assert (child.foreign, child.command) == (foreign, ("y",) if foreign else ("sh", "-c", "x"))


def test_a_vfork_child_that_found_nothing_to_become(tmp_path: Path) -> None:
    """Its end is all that it says: there was no program of that name. It ran its parent's until then."""
    first, child = told(
        tmp_path, SHELL, record("exit", 8, 7, 14, status=127), record("waited", 8, 7, 15, status=127)
    )
    assert facts(child) == (8, "fork", first.command, 14, 14, "exit", 127)
    assert (child.foreign, child.parent) == (None, first)


def test_a_process_id_is_used_again(tmp_path: Path) -> None:
    first, one, two = told(
        tmp_path,
        SHELL,
        record("program", 8, 7, 12, "/a", "a"),
        record("waited", 8, 7, 13, status=1),
        record("program", 8, 7, 14, "/b", "b"),
        record("waited", 8, 7, 15, status=2),
    )
    assert [(life.command, life.exit_status, life.parent) for life in (one, two)] == [
        (("a",), 1, first),
        (("b",), 2, first),
    ]


def test_a_process_id_is_used_again_though_nobody_saw_the_first_end(tmp_path: Path) -> None:
    _, one, two = told(tmp_path, SHELL, record("fork", 8, 7, 12), record("fork", 8, 7, 20))
    assert [(life.start, life.end, life.ended) for life in (one, two)] == [(12, 20, None), (20, None, None)]


def test_foreign_programs(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        SHELL,
        record("foreign", 8, 7, 12, "/static", "s", status=3),  # spawned
        record("waited", 8, 7, 14, status=4),
        record("fork", 9, 7, 15),
        record("foreign", 9, 7, 16, "/musl", "m", status=2),  # becomes it
        record("foreign", 0, 7, 17, "/old", "o", status=1),  # spawned, its id is not known
        record("waited", 10, 7, 20, status=139),
    )
    rows = [
        (life.pid, life.began, life.executable, life.foreign, life.exit_status) for life in fold(found, set())
    ]
    assert sorted(rows) == [
        (7, "launch", "/bin/sh", None, None),
        (8, "spawn", "/static", "static", 4),
        (9, "spawn", "/musl", "musl", None),
        (10, "spawn", "/old", "32-bit program", 139),
    ]


def test_a_foreign_program_that_could_not_start(tmp_path: Path) -> None:
    (life,) = told(
        tmp_path, SHELL, record("foreign", 7, 1, 12, "/musl", status=2), record("exec", 7, 1, 13, status=2)
    )
    assert (life.executable, life.foreign) == ("/bin/sh", None)


def test_a_child_that_never_spoke(tmp_path: Path) -> None:
    first, child = told(tmp_path, SHELL, record("waited", 8, 7, 14, status=255))
    assert (child.pid, child.exit_status, child.foreign, child.parent) == (
        8,
        255,
        "could not be followed",
        first,
    )


def test_a_daemon_is_its_parents_child_though_that_is_long_over(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        SHELL,
        record("fork", 8, 7, 12),
        record("exit", 8, 7, 13),
        record("waited", 8, 7, 14),
        record("fork", 9, 8, 15),
        record("waited", 9, 1, 30, status=1),
    )
    assert [(life.pid, life.parent.pid if life.parent else None, life.command) for life in found] == [
        (7, None, ("sh", "-c", "x")),
        (8, 7, ("sh", "-c", "x")),
        (9, 8, ("sh", "-c", "x")),
    ]


def test_still_running(tmp_path: Path) -> None:
    first, second = told(
        tmp_path, SHELL, record("fork", 8, 7, 12), record("exit", 7, 1, 20), record("running", 8, 1, 30)
    )
    assert (first.ended, second.ended, second.end) == ("exit", "running", 30)


@pytest.mark.slow
def test_many_processes_of_few_ids(tmp_path: Path) -> None:
    records = [SHELL]
    for number in range(20_000):
        pid, time = 100 + number % 50, 20 + 4 * number
        records += [
            record("program", pid, 7, time, "/x", "x", str(number)),
            record("exit", pid, 7, time + 1, status=number % 7),
        ]
        records.append(record("waited", pid, 7, time + 2, status=number % 7))
    found = told(tmp_path, *records)
    assert len(found) == 20_001
    assert all(life.exit_status == int(life.command[1]) % 7 for life in found[1:])
