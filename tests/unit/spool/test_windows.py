"""The windows of the capture, read from a control file that nobody vouches for."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from pathlib import Path

import pytest

from warplens.handover import control_layout as layout
from warplens.spool import windows
from warplens.spool.directory import read_control
from warplens.spool.windows import CaptureWindows, Window, read_capture
from warplens.testing import spool_writer as sw

ROOT = Path(__file__).resolve().parents[3]


def read(data: bytes) -> CaptureWindows:
    found = read_capture(data)
    assert found is not None
    return found


def test_windows_and_causes() -> None:
    found = read(sw.control([(10, 20, 1, 5, 0), (30, 0, 3, 0, 77)], keep_ns=5, max_bytes=6, over=7))
    assert found.windows == (Window(1, 10, 20, "start", "command", 0), Window(2, 30, 0, "nvtx", "", 77))
    assert (found.keep_ns, found.max_bytes, found.over, found.full, found.damaged) == (5, 6, 7, False, 0)


def test_the_gate_says_how_many_there_are() -> None:
    table = [(10, 20, 1, 8, 0), (30, 40, 1, 8, 0), (50, 60, 1, 8, 0)]
    assert [len(read(sw.control(table, gate=gate)).windows) for gate in range(8)] == [0, 1, 1, 2, 2, 3, 3, 3]
    assert read(sw.control(table, gate=7)).damaged == 1  # one that has no times


@pytest.mark.parametrize(
    "window",
    [
        (0, 20, 1, 1, 0),
        (30, 20, 1, 1, 0),
        (1 << 63, 0, 1, 1, 0),
        (10, (1 << 62) + 1, 1, 1, 0),
        ((1 << 64) - 1, (1 << 64) - 1, 1, 1, 0),
    ],
)
def test_impossible_times_are_left_out_and_counted(window: tuple[int, int, int, int, int]) -> None:
    found = read(sw.control([window, (100, 200, 2, 2, 0)]))
    assert found.windows == (Window(2, 100, 200, "time", "time", 0),)
    assert found.damaged == 1


def test_a_window_in_the_middle_that_nobody_closed_is_damage() -> None:
    found = read(sw.control([(10, 0, 1, 0, 0), (100, 200, 2, 2, 0)]))
    assert ([window.number for window in found.windows], found.damaged) == ([2], 1)


def test_unknown_causes_have_no_name() -> None:
    assert read(sw.control([(10, 20, 99, 1 << 31, 5)])).windows == (Window(1, 10, 20, "none", "none", 5),)


def test_all_windows_used_up_is_noted() -> None:
    table = [(10 * n + 10, 10 * n + 15, 3, 3, 1) for n in range(8192)]
    assert read(sw.control(table)).full
    assert not read(sw.control(table[:-1])).full
    assert len(read(sw.control(table, gate=(1 << 32) - 1)).windows) == 8192


def test_windows_beyond_the_cut_are_missing() -> None:
    data = sw.control([(10, 20, 1, 1, 0), (30, 40, 1, 1, 0)])
    assert read_capture(data[:4095]) is None
    assert read(data[:4096]).windows == ()
    assert len(read(data[: 2 * 4096 + 63]).windows) == 1


def test_other_versions_have_no_windows_but_a_clock(tmp_path: Path) -> None:
    data = bytearray(sw.control([(10, 20, 1, 1, 0)], clock=(1, 2, 3, 4, 5)))
    data[8:12] = struct.pack("<I", layout.VERSION + 1)
    (tmp_path / "control").write_bytes(data)
    found = read_control(tmp_path)
    assert found is not None
    assert (found.capture, found.clock.kind, found.clock.mult) == (None, "tsc", 5)


def test_things_that_are_no_files(tmp_path: Path) -> None:
    path = tmp_path / "control"
    path.mkdir()
    assert windows.read_file(path) == b""
    path.rmdir()
    os.mkfifo(path)
    assert windows.read_file(path) == b""  # and does not wait for a writer
    path.unlink()
    path.symlink_to("/dev/zero")
    assert windows.read_file(path) == b""
    path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert len(windows.read_file(path)) == layout.FILE_SIZE


@pytest.mark.slow
def test_rubbish() -> None:
    chance = random.Random(4)
    good = sw.control([(10, 20, 1, 1, 0), (30, 40, 1, 1, 0)])
    for _ in range(300):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 40)):
            data[chance.randrange(len(data)) if chance.random() < 0.3 else chance.randrange(8, 300)] = (
                chance.randrange(256)
            )
        found = read_capture(bytes(data[: chance.choice((len(data), chance.randrange(len(data))))]))
        for window in found.windows if found else ():
            assert 0 < window.start <= 1 << 62
            assert window.end == 0 or window.start <= window.end <= 1 << 62


@pytest.mark.slow
def test_the_places_are_those_of_the_agents_header(tmp_path: Path) -> None:
    source = tmp_path / "places.cpp"
    fields = (
        "processes",
        "failed",
        "error",
        "lost",
        "not_chained",
        "gate",
        "trigger",
        "keep_ns",
        "max_bytes",
        "bytes",
        "over",
    )
    source.write_text(
        '#include "warplens/format.h"\n#include <cstdio>\nint main() {\n'
        + "".join(f'  std::printf("%zu ", offsetof(warplens::ControlPage, {name}));\n' for name in fields)
        + '  std::printf("%zu %zu %zu\\n", warplens::kControlWindows, warplens::kControlSize, warplens::kWindows);\n}\n'
    )
    program = tmp_path / "places"
    compiler = ["g++", "-std=c++20", "-Wno-invalid-offsetof", f"-I{ROOT}/native/include"]
    subprocess.run([*compiler, source, "-o", program], check=True, timeout=60)
    numbers = [
        int(word)
        for word in subprocess.run([program], capture_output=True, check=True, timeout=60).stdout.split()
    ]
    limits = layout.LIMITS
    counters = [
        layout.PROCESSES,
        layout.FAILED,
        layout.ERROR,
        layout.LOST,
        layout.NOT_CHAINED,
        layout.GATE,
        layout.TRIGGER,
    ]
    sizes = [layout.WINDOWS, layout.FILE_SIZE, layout.MOST_WINDOWS]
    assert numbers == [*counters, limits, limits + 8, limits + 16, limits + 24, *sizes]
    assert limits + 24 == layout.OVER
