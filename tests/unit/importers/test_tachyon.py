"""Recordings of Python's sampling profiler become samples, in every way in which it writes them; broken ones are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warplens
from tests.support.thorough import examples
from tests.unit.importers.tachyon_file import FULL, POP_PUSH, SUFFIX, TachyonFile
from warplens.cli.group import commands
from warplens.errors import NotAReport, ReportError
from warplens.importers.formats.tachyon import recognises
from warplens.importers.importing import format_of, import_file

GIL, CPU, UNKNOWN, EXCEPTION, MAIN = 1, 2, 4, 16, 32
RAN = GIL | UNKNOWN


def story(order: str = "<") -> TachyonFile:
    """A thread that loads and steps, and one that waits for a socket."""
    file = TachyonFile(order=order)
    main, load = file.frame("/app/train.py", "main", 80), file.frame("/app/train.py", "load", 20)
    step, native = file.frame("/app/train.py", "step", 50), file.frame("~", "<native>", 0)
    wait = file.frame("/lib/socket.py", "Socket.recv", -1)
    file.sample(FULL, 100, 1000, RAN | MAIN, 2, load, main)  # the innermost frame first
    file.repeat(100, (1000, RAN | MAIN), (1000, RAN | MAIN), (1000, UNKNOWN | MAIN))
    file.sample(FULL, 101, 2000, UNKNOWN, 1, wait)
    file.sample(SUFFIX, 100, 1000, RAN | MAIN, 2, 1, native)
    file.sample(POP_PUSH, 100, 1000, RAN | MAIN, 2, 1, step)
    file.sample(POP_PUSH, 100, 1000, RAN | MAIN, 1, 0)
    file.sample(SUFFIX, 100, 1000, RAN | MAIN, 0, 0)
    return file.repeat(101, (500_000, UNKNOWN))


# us since the begin of the first sample and the last one, how many, stack, held the GIL
SEEN = [
    (1000, 3000, 3, "main;load", True),
    (2000, 2000, 1, "Socket.recv", False),
    (4000, 4000, 1, "main;load", False),
    (5000, 5000, 1, "main;load;<native>", True),
    (6000, 6000, 1, "main;step", True),
    (7000, 7000, 1, "main", True),
    (8000, 8000, 1, "", True),
    (502_000, 502_000, 1, "Socket.recv", False),  # half a second later: not the same row
]


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    report = path.with_suffix(".warplens")
    if not report.exists():
        import_file(path, report)
    with warplens.open(report) as opened:
        found: list[dict[str, Any]] = opened.table(table).to_pylist()
    return found


def seen(path: Path) -> list[tuple[int, int, int, str, bool]]:
    frames = {row["frame"]: row for row in rows(path, "frames")}

    def stack(frame: int | None) -> str:
        if frame is None:
            return ""
        above = frames[frame]["parent"]
        return (
            f"{stack(above)};{frames[frame]['function']}" if above is not None else frames[frame]["function"]
        )

    begin = 5_000_000
    return [
        (
            row["start"] // 1000 - begin,
            row["end"] // 1000 - begin,
            row["count"],
            stack(row["stack"]),
            row["gil"],
        )
        for row in rows(path, "samples")
    ]


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "zstd"])
@pytest.mark.parametrize("wide", [False, True], ids=["four", "eight"])
def test_every_way_of_writing_says_the_same(order: str, packed: bool, wide: bool, tmp_path: Path) -> None:
    path = story(order).write(tmp_path / "run.bin", packed=packed, wide=wide)
    assert format_of(path).id == "tachyon"
    assert seen(path) == SEEN


def test_the_command_says_what_it_imported(tmp_path: Path) -> None:
    done = CliRunner().invoke(commands, ["import", str(story().write(tmp_path / "run.bin"))])
    assert done.stdout.endswith("run.bin.warplens: 8 sampled stacks\n")


def test_threads_and_frames_are_imported(tmp_path: Path) -> None:
    path = story().write(tmp_path / "run.bin")
    assert [(row["tid"], row["name"]) for row in rows(path, "threads")] == [(100, "main"), (101, None)]
    assert [(row["function"], row["kind"], row["file"], row["line"]) for row in rows(path, "frames")] == [
        ("main", "python", "/app/train.py", 80),
        ("load", "python", "/app/train.py", 20),
        ("Socket.recv", "python", "/lib/socket.py", None),
        ("<native>", "native", None, None),
        ("step", "python", "/app/train.py", 50),
    ]
    assert all(row["on_cpu"] for row in rows(path, "samples")), "the file does not say which threads ran"
    (notice,) = rows(path, "diagnostics")
    assert (
        "Python 3.15.2; 1,000 us between samples were requested, 1,000 us are usual; it does not say which"
        in notice["message"]
    )
    (window,) = rows(path, "capture_windows")
    assert (window["start"], window["end"]) == (5_000_000_000, 5_503_000_000)


def test_threads_that_did_not_run_are_kept_apart(tmp_path: Path) -> None:
    file = TachyonFile()
    frame = file.frame("/a.py", "f", 1)
    file.sample(FULL, 7, 0, CPU | GIL, 1, frame).repeat(7, (1000, 0), (1000, CPU))
    assert [row["on_cpu"] for row in rows(file.write(tmp_path / "run.bin"), "samples")] == [True, False, True]


def test_exceptions_are_known_where_the_profiler_looked_for_them(tmp_path: Path) -> None:
    file = TachyonFile()
    frame = file.frame("/a.py", "f", 1)
    file.sample(FULL, 7, 0, RAN | EXCEPTION, 1, frame).repeat(7, (1000, RAN))
    assert [row["exception"] for row in rows(file.write(tmp_path / "run.bin"), "samples")] == [True, False]
    assert {row["exception"] for row in rows(story().write(tmp_path / "story.bin"), "samples")} == {None}


def test_a_sample_stands_for_the_usual_time_between_two(tmp_path: Path) -> None:
    file = TachyonFile(interval=100)
    frame = file.frame("/a.py", "f", 1)
    file.sample(FULL, 7, 0, RAN, 1, frame).repeat(
        7, (300, RAN), (310, RAN), (300, RAN), (5000, RAN), (300, RAN)
    )
    (row,) = rows(file.write(tmp_path / "run.bin"), "samples")
    assert (row["count"], row["weight"]) == (6, 6 * 300_000)


def test_interpreters_with_the_same_thread_have_tracks_of_their_own(tmp_path: Path) -> None:
    file = TachyonFile()
    frame = file.frame("/a.py", "f", 1)
    file.sample(FULL, 7, 0, RAN, 1, frame).sample(FULL, 7, 0, RAN, 1, frame, interpreter=2)
    assert [row["name"] for row in rows(file.write(tmp_path / "run.bin"), "threads")] == [
        None,
        "interpreter 2",
    ]


def broken(name: str) -> bytes:
    file = story()
    whole = file.bytes()
    if name == "cut off":
        return whole[:-40]
    if name == "longer":
        return whole + b"\0"
    if name == "version":
        return file.bytes(version=2)
    if name == "samples":
        file.count += 1
    elif name == "kind":
        file.sample(9, 100, 0, 0)
    elif name == "frame":
        file.sample(FULL, 100, 0, 0, 1, 99)
    elif name == "shared":
        file.sample(SUFFIX, 100, 0, 0, 5, 0)
    elif name == "deep":
        file.sample(FULL, 100, 0, 0, 1 << 20)
    elif name == "repeated":
        file._head(0, 100, 0)
        file.data += b"\xff\xff\xff\xff\x0f"
    elif name == "century":
        file.repeat(100, (1 << 60, 0))
    elif name == "end":
        file._head(FULL, 100, 0)
        file.data += b"\xff"
    elif name == "zstd":
        packed = file.bytes(packed=True)
        return packed[:70] + b"\xff" * 8 + packed[78:]
    elif name == "unfinished":
        return whole[:8] + bytes(56) + whole[64:]
    elif name == "empty":
        return TachyonFile().bytes()
    return file.bytes()


MESSAGES = {
    "cut off": "is broken: it was written with .* bytes and has|has no positions of its parts",
    "longer": "is broken: it was written with",
    "version": "Python 3.15.2 wrote it in version 2 of the format; this warplens reads version 1",
    "samples": "its header counts 11 samples, the file has 10",
    "kind": "of the unknown kind 9",
    "frame": "in the frame 99 of 5",
    "shared": "a stack of 5 frames, 5 of them known, follows one of 0",
    "deep": "a stack of 1,048,576 frames",
    "repeated": "a stack is repeated 4,294,967,295 times",
    "century": "longer than a century",
    "end": "a number is cut off",
    "zstd": "its samples cannot be unpacked",
    "unfinished": "has no positions of its parts",
    "empty": "contains no sample",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_broken_file_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "run.bin").write_bytes(broken(name))
    with pytest.raises(ReportError, match=MESSAGES[name]):
        import_file(tmp_path / "run.bin", tmp_path / "run.warplens")
    assert not (tmp_path / "run.warplens").exists()


@settings(
    max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damaged_files_raise_nothing_else(tmp_path: Path, data: st.DataObject) -> None:
    whole = bytearray(story().bytes(packed=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "run.bin").write_bytes(whole)
    report = tmp_path / f"{len(list(tmp_path.iterdir()))}.warplens"
    try:
        import_file(tmp_path / "run.bin", report)
    except ReportError:
        assert not report.exists()


def test_other_files_of_this_name_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other.bin").write_bytes(b"\x7fELF" * 100)
    assert not recognises(tmp_path / "other.bin")
    with pytest.raises(NotAReport, match="is no recording of Python's sampling profiler"):
        format_of(tmp_path / "other.bin")
