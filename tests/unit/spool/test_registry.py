"""The register of processes is read whatever state it is in, and nothing in it is trusted."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from warplens.spool import lives as living
from warplens.spool.registry import EXIT, PROGRAM, RegisterEntry, read_register
from warplens.testing.spool_writer import process_record as record


def write(folder: Path, *records: bytes) -> Path:
    (folder / "processes.log").write_bytes(b"".join(records))
    return folder


def test_no_register(tmp_path: Path) -> None:
    register = read_register(tmp_path)
    assert (register.entries, register.damaged, register.unread) == ([], 0, 0)


def test_records_in_order_of_time(tmp_path: Path) -> None:
    write(
        tmp_path,
        record("exit", 7, 1, 30, status=3),
        record("program", 7, 1, 20, "/bin/x", "x", "a b", rank=2, local_rank=1),
    )
    assert read_register(tmp_path).entries == [
        RegisterEntry(PROGRAM, 7, 1, 0, 20, 2, 1, (b"/bin/x", b"x", b"a b")),
        RegisterEntry(EXIT, 7, 1, 3, 30, None, None, ()),
    ]


def test_an_empty_word_is_a_word(tmp_path: Path) -> None:
    write(tmp_path, record("program", 7, 1, 20, "/bin/x", "x", "", "y", ""))
    assert read_register(tmp_path).entries[0].texts == (b"/bin/x", b"x", b"", b"y", b"")


def test_records_cut_off_by_a_full_disk_are_skipped(tmp_path: Path) -> None:
    half = record("program", 8, 1, 21, "/bin/a-long-name", "word")[:75]
    write(tmp_path, record("program", 7, 1, 20, "/bin/x", "x"), half, record("exit", 7, 1, 30), half)
    register = read_register(tmp_path)
    assert [entry.pid for entry in register.entries] == [7, 7]
    assert register.damaged == 2


def test_impossible_records_are_left_out(tmp_path: Path) -> None:
    good = record("program", 7, 1, 20, "/bin/x")
    for bad in (
        record("exit", -3, 1, 20),
        record("exit", 0, 1, 20),
        record("exit", 3, -1, 20),
        record("exit", 3, 1, 0),
        record("exit", 3, 1, (1 << 62) + 1),
        good[:8] + b"\x63" + good[9:],
        good[:4] + (12).to_bytes(4, "little") + good[8:],
        good[:4] + (1 << 30).to_bytes(4, "little") + good[8:],
    ):
        write(tmp_path, good, bad, good)
        register = read_register(tmp_path)
        assert [entry.pid for entry in register.entries] == [7, 7]
        assert register.damaged >= 1


@pytest.mark.slow
def test_random_bytes_in_the_register_are_survived(tmp_path: Path) -> None:
    choice = random.Random(4)
    kinds = ("program", "fork", "exec", "exit", "waited", "foreign", "running")
    for _ in range(150):
        records = [
            record(
                choice.choice(kinds),
                choice.randrange(8),
                choice.randrange(8),
                choice.randrange(1, 40),
                *["/bin/x", "w"][: choice.randrange(3)],
            )
            for _ in range(choice.randrange(1, 60))
        ]
        data = bytearray(b"".join(records))
        for _ in range(choice.randrange(4)):
            data[choice.randrange(len(data))] = choice.randrange(256)
        write(tmp_path, bytes(data)[: choice.randrange(len(data) + 1)])
        entries = read_register(tmp_path).entries
        found = living.fold(living.lives(entries, 3), set())
        places = {id(life): number for number, life in enumerate(found)}
        for life in found:
            seen = set()
            at: living.Life | None = life
            while at is not None:  # nobody is its own ancestor, and all of them are there
                assert id(at) in places
                assert id(at) not in seen
                seen.add(id(at))
                at = at.parent


def test_a_register_of_noise(tmp_path: Path) -> None:
    (tmp_path / "processes.log").write_bytes(b"WPRC" * 5000 + os.urandom(20_000))
    assert read_register(tmp_path).damaged > 0


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "processes.log").mkdir()
    assert read_register(tmp_path).entries == []
