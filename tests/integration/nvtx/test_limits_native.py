"""Limits of the spool under real programs: size, time kept, file systems without reservation, disks that are full at any stage."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.capturing import Capture
from tests.support.programs.launching import until
from tests.support.thorough import few
from warplens.spool.directory import spool_files
from warplens.spool.reader import SpoolFile

pytestmark = [pytest.mark.require("native", "gcc")]
Target = Callable[..., Path]
MAX_SIZE_REACHED = 4096
SECOND = 1_000_000_000
BUFFERED = {"WARPLENS_SPOOL_SPACE": "buffered"}


def run(capture: Capture, *words: str | Path, **variables: str) -> str:
    """Run a program that must end well, and return what it printed."""
    done = subprocess.run(
        list(map(str, words)),
        env={**capture.environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def recorded(path: Path) -> tuple[int, dict[int, int], list[str]]:
    """Of one spool: its ranges, open ones too; what it dropped by type; the codes of its notes."""
    with SpoolFile(path) as spool:
        counts = spool.events.counts()
        last = {tuple(row) for row in spool.events.last_events().tolist()}
        rows = counts.ranges + counts.start_ends + len(spool._open_slots(last)[0])
        dropped = {number: count for number, count in enumerate(spool.head.dropped) if count}
        return rows, dropped, [note.code for note in spool.notes()]


def blocks(capture: Capture) -> int:
    """What the spools take on the disk (bytes)."""
    return sum(path.stat().st_blocks * 512 for path in spool_files(capture.spool))


@pytest.mark.parametrize("variables", [{}, BUFFERED], ids=["reserved", "buffered"])
def test_all_files_of_a_run_stay_below_the_limit(
    variables: dict[str, str], tmp_path: Path, target: Target
) -> None:
    limit = 3 << 20
    capture = Capture(tmp_path / "spool", open=True, max_bytes=limit)
    threads, ranges = 4, 20_000
    for _ in range(3):
        assert run(capture, target("nvtx_storm"), str(threads), str(ranges), **variables) == "done\n"
    found = [recorded(path) for path in spool_files(capture.spool)]
    assert 1 <= len(found) <= 3
    for rows, dropped, _ in found:
        assert rows + dropped.get(1, 0) == threads * (ranges + 1)
    assert any("dropped-records" in codes for _, _, codes in found)
    assert capture.size() <= limit
    with SpoolFile(spool_files(capture.spool)[-1]) as spool:
        spool.events  # noqa: B018
        assert spool.head.error == MAX_SIZE_REACHED
        assert any("--max-size reached; allow more" in note.message for note in spool.notes())


def test_without_room_for_a_header_the_program_runs_all_the_same(tmp_path: Path, target: Target) -> None:
    capture = Capture(tmp_path / "spool", open=True, max_bytes=4096)
    assert run(capture, target("nvtx_storm"), "2", "1000") == "done\n"
    assert not spool_files(capture.spool)
    counts = capture.control.counts()
    assert (counts.failed, counts.error) == (1, MAX_SIZE_REACHED)
    assert counts.lost == 2 * 2 * 1001


@pytest.mark.parametrize("variables", [{}, BUFFERED], ids=["reserved", "buffered"])
def test_a_flight_recorder_takes_no_more_room_after_a_while(
    variables: dict[str, str], tmp_path: Path, target: Target
) -> None:
    """Killed while it records: the last moments are there in one piece, and the spool is far smaller than all that was recorded."""
    keep = 100_000_000
    capture = Capture(tmp_path / "spool", open=True, keep_ns=keep)
    log = tmp_path / "counts"
    with subprocess.Popen(
        [target("nvtx_storm"), "2", "100000000", "steady", log],
        env={**capture.environment(), **variables},
        stdout=subprocess.DEVNULL,
    ) as process:
        time.sleep(1.5)
        until(lambda: closed(log) > 300_000, "ranges")
        half, so_far = capture.size(), closed(log)
        time.sleep(1.5)
        until(lambda: closed(log) > 2 * so_far, "as many again")
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed = time.monotonic_ns()
    (path,) = spool_files(capture.spool)
    assert capture.size() <= half * 2  # the file grows by doubling, if at all
    with SpoolFile(path) as spool:
        counts = spool.events.counts()
        assert counts.damaged == counts.lost_names == 0
        assert counts.ranges < closed(log) / 3
        assert counts.first < killed - keep
        assert not any(spool.head.dropped)
        assert {tid for tid, _, _ in spool.names.threads.values()} != {0}
        assert len(spool.names.threads) == 2
        assert [note.code for note in spool.notes()] == [*(["not-reserved"] if variables else []), "given-up"]


@pytest.mark.parametrize("variables", [{}, BUFFERED], ids=["reserved", "buffered"])
def test_a_flight_recorder_runs_for_days(variables: dict[str, str], tmp_path: Path, target: Target) -> None:
    """A second is a day here. After the first day the spool grows no more, and it says how much was given up, and until when."""
    hour, day = 3600 * SECOND, 86_400 * SECOND
    capture = Capture(tmp_path / "spool", keep_ns=hour)
    capture.hurry(86_400)
    capture.open()
    log = tmp_path / "counts"
    words: list[Any] = [target("nvtx_storm"), "2", "100000000", "steady", log]
    with subprocess.Popen(
        words, env={**capture.environment(), **variables}, stdout=subprocess.DEVNULL
    ) as process:
        until(lambda: closed(log), "the first range")
        time.sleep(1)
        after_a_day = capture.size()
        time.sleep(2.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert capture.size() <= 2 * after_a_day
    (path,) = spool_files(capture.spool)
    with SpoolFile(path) as spool:
        counts = spool.events.counts()
        assert counts.last - spool.process.start_ns > 3 * day
        assert not any(spool.head.dropped)
        notes = {note.code: note for note in spool.notes()}
        assert set(notes) == ({"given-up", "not-reserved"} if variables else {"given-up"})
        count, when = notes["given-up"].count, notes["given-up"].time
        assert count is not None
        assert when is not None
        assert abs(count + counts.ranges - closed(log)) < closed(log) / 10
        assert counts.last - day < when < counts.last - hour
        assert "s after it began to be recorded" in notes["given-up"].message


def test_a_flight_recorder_with_little_room_keeps_the_latest(tmp_path: Path, target: Target) -> None:
    """There is room for some seconds of an hour: what was last is there, and the spool says from when on all is."""
    limit = 4 << 20
    capture = Capture(tmp_path / "spool", open=True, keep_ns=3600 * SECOND, max_bytes=limit)
    threads, ranges = 2, 200_000
    assert run(capture, target("nvtx_storm"), str(threads), str(ranges)) == "done\n"
    (path,) = spool_files(capture.spool)
    assert capture.size() <= limit
    with SpoolFile(path) as spool:
        counts = spool.events.counts()
        assert counts.ranges > 30_000
        assert not any(spool.head.dropped)
        notes = {note.code: note for note in spool.notes()}
        assert set(notes) == {"given-up", "kept-less", "spool-error"}
        assert notes["given-up"].count == pytest.approx(threads * ranges - counts.ranges, rel=0.05)
        assert counts.first < notes["kept-less"].time < counts.last  # type: ignore[operator]
        # The threads end with the ranges around all others.
        assert len(spool.names.threads) == threads


def test_a_full_spool_says_from_when_to_when_records_were_lost(tmp_path: Path, target: Target) -> None:
    capture = Capture(tmp_path / "spool", open=True, max_bytes=1 << 20)
    assert run(capture, target("nvtx_storm"), "2", "100000") == "done\n"
    (path,) = spool_files(capture.spool)
    with SpoolFile(path) as spool:
        spool.events  # noqa: B018
        assert (
            spool.process.start_ns < spool.head.first_loss_ns < spool.head.last_loss_ns <= spool.head.end_ns
        )
        (note,) = [note for note in spool.notes() if note.code == "dropped-records"]
        assert note.time == spool.head.first_loss_ns
        assert re.search(
            r"were dropped from [\d.]+ ms to [\d.]+ ms after it began to be recorded because", note.message
        )


def test_a_flight_recorder_of_threads_that_come_and_go(tmp_path: Path, target: Target) -> None:
    sizes = []
    for count in (2_000, 16_000):
        capture = Capture(tmp_path / str(count), open=True, keep_ns=20_000_000)
        run(capture, target("nvtx_odd"), "one by one", str(count))
        (path,) = spool_files(capture.spool)
        with SpoolFile(path) as spool:
            assert spool.events.counts().damaged == 0
            assert set(spool.names.threads) >= {thread for thread, *_ in spool.events.threads()}
            sizes.append(spool.head.chunk_end)
    # How many threads there are within the time that is kept depends on the machine's mood; eight times as many there are not.
    assert sizes[1] <= sizes[0] * 4


def test_names_and_payloads_of_a_flight_recorder_are_those_of_their_ranges(
    tmp_path: Path, target: Target
) -> None:
    capture = Capture(tmp_path / "spool", open=True, keep_ns=50_000_000)
    run(capture, target("nvtx_extensions"))
    notes = [recorded(path)[2] for path in spool_files(capture.spool)]
    assert notes
    assert all("damaged-payloads" not in codes for codes in notes)


@pytest.mark.parametrize(
    "words", [("4", "30000"), ("4", "10000", "names"), ("2", "5000", "deep")], ids=["steps", "names", "deep"]
)
def test_without_reservation_everything_is_there_at_the_end(
    words: tuple[str, ...], tmp_path: Path, target: Target
) -> None:
    capture = Capture(tmp_path / "spool", open=True)
    assert run(capture, target("nvtx_storm"), *words, **BUFFERED) == "done\n"
    (path,) = spool_files(capture.spool)
    rows, dropped, codes = recorded(path)
    assert rows == int(words[0]) * (int(words[1]) + 1)
    assert not dropped
    assert codes == ["not-reserved"]
    with SpoolFile(path) as spool:
        spool.events  # noqa: B018
        assert [note.severity for note in spool.notes()] == ["info"]


def test_without_reservation_a_kill_loses_the_last_moment_at_most(tmp_path: Path, target: Target) -> None:
    pick = random.Random(5)
    for number in range(4):
        capture = Capture(tmp_path / str(number), open=True)
        log = tmp_path / f"{number}.log"
        words: list[Any] = [target("nvtx_storm"), "2", "100000000", "steady", log]
        with subprocess.Popen(
            words, env={**capture.environment(), **BUFFERED}, stdout=subprocess.DEVNULL
        ) as process:
            until(lambda: closed(log), "the first range")  # noqa: B023
            time.sleep(pick.uniform(0.3, 0.8))
            before = time.monotonic_ns()
            until(lambda: written(capture) > before, "what was recorded before")  # noqa: B023
            process.send_signal(signal.SIGKILL)
            process.wait()
        (path,) = spool_files(capture.spool)
        with SpoolFile(path) as spool:
            counts = spool.events.counts()
            assert counts.damaged == 0
            assert not any(spool.head.dropped)
            assert [note.severity for note in spool.notes() if note.code == "not-reserved"] == ["warning"]
            assert counts.last > before


@pytest.mark.parametrize("mode", few(["children", "children of threads"]))
def test_without_reservation_processes_fork_and_record(mode: str, tmp_path: Path, target: Target) -> None:
    capture = Capture(tmp_path / "spool", open=True)
    assert run(capture, target("nvtx_odd"), mode, "40", **BUFFERED) == "failed 0\ndone\n"
    assert len(spool_files(capture.spool)) == 41
    assert all(not dropped for _, dropped, _ in map(recorded, spool_files(capture.spool)))


def test_without_reservation_a_main_thread_may_leave_before_the_others(
    tmp_path: Path, target: Target
) -> None:
    """The thread that writes must not keep alive a process whose own threads have all ended."""
    capture = Capture(tmp_path / "spool", open=True)
    assert run(capture, target("nvtx_odd"), "leave", "100", **BUFFERED) == ""
    (path,) = spool_files(capture.spool)
    assert recorded(path)[0] == 100 + 2


def test_without_reservation_a_limit_of_the_program_costs_ranges(tmp_path: Path, target: Target) -> None:
    capture = Capture(tmp_path / "spool", open=True)
    assert run(capture, target("nvtx_odd"), "file size", "100000", **BUFFERED) == "done\n"
    (path,) = spool_files(capture.spool)
    rows, dropped, codes = recorded(path)
    assert rows + dropped.get(1, 0) == 100_002
    assert {"dropped-records", "not-reserved"} <= set(codes)


PROGRAMS: dict[str, tuple[tuple[str, ...], int]] = {
    "steps": (("nvtx_storm", "3", "20000"), 3 * 20_001),
    "names": (("nvtx_storm", "3", "10000", "names"), 3 * 10_001),
    "deep": (("nvtx_storm", "2", "20000", "deep"), 2 * 20_001),
    "domains": (("nvtx_odd", "domains", "20000"), 20_002),
    "threads": (("nvtx_odd", "together", "500"), 502),
}


@pytest.mark.require("tmpfs")
@pytest.mark.parametrize("variables", [{}, BUFFERED], ids=["reserved", "buffered"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_disk_that_is_full_at_any_stage(
    program: str, variables: dict[str, str], tmpfs: Callable[[str], Path], tmp_path: Path, target: Target
) -> None:
    """Less and less room, so that it ends while the file is made, grows, gets names or tables: what is kept and what is lost is all."""
    (name, *words), count = PROGRAMS[program]
    disk = tmpfs("size=8m")
    capture = Capture(disk / "spool", open=True)
    filler = disk / "filler"
    for room in (6 << 20, 1 << 20, 300 << 10, 40 << 10, 12 << 10, 4 << 10, 0):
        filler.write_bytes(b"")
        fill(filler, room)
        assert run(capture, target(name), *words, **variables) == "done\n"
        files = spool_files(capture.spool)
        if not files:
            assert capture.control.counts().failed > 0
            assert room <= 12 << 10
            continue
        rows, dropped, _ = recorded(files[0])
        assert rows + dropped.get(1, 0) == count, room
        files[0].unlink()


def closed(log: Path) -> int:
    """How many "step" ranges both threads of nvtx_storm have closed so far."""
    return sum(struct.unpack("<2Q", log.read_bytes())) if log.exists() and log.stat().st_size == 16 else 0


def written(capture: Capture) -> int:
    """Until when ranges are in the file, which is being written (ns)."""
    with SpoolFile(spool_files(capture.spool)[0]) as spool:
        return spool.events.counts().last


def fill(file: Path, room: int) -> None:
    """Take all of the disk but `room` bytes."""
    status = os.statvfs(file.parent)
    with file.open("wb") as out:
        out.write(bytes(max(0, status.f_bavail * status.f_frsize - room)))


@pytest.mark.parametrize("variables", [{}, BUFFERED], ids=["reserved", "buffered"])
def test_a_spool_directory_that_vanishes(variables: dict[str, str], tmp_path: Path, target: Target) -> None:
    capture = Capture(tmp_path / "spool", open=True)
    words: list[Any] = [target("nvtx_storm"), "2", "400000", "steady"]
    with subprocess.Popen(
        words, env={**capture.environment(), **variables}, stdout=subprocess.PIPE, text=True
    ) as process:
        until(lambda: spool_files(capture.spool), "the spool")
        shutil.rmtree(capture.spool)
        assert process.communicate(timeout=60)[0] == "done\n"
        assert process.returncode == 0


def test_many_short_threads_and_children_take_little_room(tmp_path: Path, target: Target) -> None:
    capture = Capture(tmp_path / "threads", open=True)
    run(capture, target("nvtx_odd"), "one by one", "10000")
    assert blocks(capture) <= 256 << 20
    children = Capture(tmp_path / "children", open=True)
    run(children, target("nvtx_odd"), "children", "250")
    assert blocks(children) <= (512 << 20) // 4
