"""The tree of processes as `warplens info` prints it."""

from __future__ import annotations

from typing import Any

import click

from warplens.cli.printing.process_tree import MOST_LINES, heading, lines


class Rows(list[dict[str, Any]]):
    def put(self, name: str, parent: int | None = None, **columns: Any) -> int:
        """Add a silent process that ended well; return its key."""
        key = len(self)
        row = {
            "process": key,
            "pid": 1000 + key,
            "parent": parent,
            "name": name,
            "executable": f"/bin/{name}",
            "command": name,
            "host": "h",
            "rank": None,
            "primary": key == 0,
            "start": key,
            "end": key + 1_000_000,
            "exit_status": 0,
            "ended": "exit",
            "began": "spawn",
            "recorded": False,
            "not_recorded": "made no NVTX call",
            **columns,
        }
        self.append(row)
        return key


def shown(rows: Rows, width: int = 100) -> list[str]:
    return [click.unstyle(line) for line in lines(rows, width)]


def test_a_small_tree() -> None:
    rows = Rows()
    make = rows.put("make", command="make all")
    train = rows.put(
        "train.py", make, recorded=True, not_recorded=None, rank=0, exit_status=137, ended="signal"
    )
    rows.put("worker", train, recorded=True, not_recorded=None, ended="running", exit_status=None)
    rows.put("old", make, not_recorded="32-bit program", exit_status=3)
    rows.put("lost", make, ended=None, exit_status=None)
    text = "\n".join(shown(rows))
    for words in (
        "make all",
        "rank 0, killed by SIGKILL",
        "still running",
        "exit 3, not recorded: 32-bit program",
        "end unknown, made no NVTX call",
    ):
        assert words in text
    assert [line.index(line.split()[1]) for line in shown(rows)] == [8, 10, 12, 10, 10]
    assert heading(rows) == "Processes: 5, of which 2 recorded"


def test_similar_processes_are_folded_with_their_children() -> None:
    rows = Rows()
    make = rows.put("make")
    for number in range(200):
        shell = rows.put("sh", make, command=f"sh -c 'gcc {number}.c'")
        rows.put("gcc", shell, command=f"gcc {number}.c")
    rows.put("gcc", make, exit_status=1)
    found = shown(rows)
    assert [line.split()[1] for line in found] == ["make", "sh", "gcc", "199", "gcc"]
    assert "… 199 more like it, 1.00 ms each, 398 processes in all" in found[3]


def test_how_long_those_ran_that_are_alike() -> None:
    rows = Rows()
    shell = rows.put("sh")
    for number in range(9):
        rows.put("true", shell, start=0, end=(number + 1) * 1_000_000)
    (line,) = [line for line in shown(rows) if "more" in line]
    assert line.endswith(
        "… 8 more like it, 6.00 ms each (2.00 ms to 9.00 ms)"
    )  # without the first one, which stands in full


def test_few_that_are_alike_stand_in_full() -> None:
    rows = Rows()
    first = rows.put("mpirun")
    for _ in range(3):
        rows.put("rank.py", first)
    assert len(shown(rows)) == 4


def test_a_long_tree_keeps_what_recorded() -> None:
    rows = Rows()
    first = rows.put("make")
    for number in range(300):
        rows.put(f"tool{number}", first)
    inner = rows.put("sh", first)
    rows.put("train.py", inner, recorded=True, not_recorded=None)
    found = shown(rows)
    assert len(found) == MOST_LINES + 1
    assert [line.split()[1] for line in found[-3:-1]] == ["sh", "train.py"]
    assert found[-1] == "  … and 243 others; -f json lists all"


def test_programs_that_only_made_way_have_no_line() -> None:
    rows = Rows()
    first = rows.put("env", ended="exec", exit_status=None)
    second = rows.put("nice", first, began="exec", ended="exec", exit_status=None)
    rows.put("train.py", second, began="exec")
    assert [line.split()[1] for line in shown(rows)] == ["train.py", "and"]
    assert shown(rows)[-1] == "  … and 2 others; -f json lists all"


def test_one_alone_is_not_left_out() -> None:
    rows = Rows()
    first = rows.put("env", ended="exec", exit_status=None)
    rows.put("train.py", first, began="exec")
    assert [line.split()[1] for line in shown(rows)] == ["env", "train.py"]
    rows = Rows()
    first = rows.put("make")
    for number in range(MOST_LINES):
        rows.put(f"tool{number}", first)
    assert len(shown(rows)) == MOST_LINES + 1
    assert "other" not in shown(rows)[-1]


def test_lines_keep_to_the_terminal() -> None:
    rows = Rows()
    at: int | None = None
    for number in range(40):
        at = rows.put("name" * 20, at, command="word " * 100, exit_status=number)
    for width in (40, 80, 200):
        assert max(map(len, shown(rows, width))) <= width


def test_a_circle_of_strangers_is_shown_once() -> None:
    rows = Rows()
    for number in range(5):
        rows.put(f"p{number}", (number + 1) % 5)
    assert sorted(line.split()[1] for line in shown(rows)) == ["p0", "p1", "p2", "p3", "p4"]


def test_reports_that_do_not_tell() -> None:
    rows = Rows()
    for status in (3, None):
        rows.put("x", exit_status=status)
        rows[-1].update(dict.fromkeys(("name", "began", "ended", "recorded", "not_recorded")))
    assert heading(rows) == "Processes"
    assert ["exit 3" in line for line in shown(rows)] == [True, False]


def test_hosts_are_named_where_there_are_several() -> None:
    rows = Rows()
    rows.put("x", host="node1")
    rows.put("x", host="node2")
    assert ["node1" in shown(rows)[0], "node2" in shown(rows)[1]] == [True, True]


def test_no_control_characters() -> None:
    rows = Rows()
    rows.put("\x1b[31m", command="\x1b]0;x\x07", host="h\n", not_recorded="\x1b[2J")
    assert all(line.isprintable() for line in shown(rows))
