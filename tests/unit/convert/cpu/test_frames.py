"""The tree of stacks, and what rows say of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.convert.cpu.spools import FRAMES, LOAD, MAIN, MODULES, NATIVE, TEXTS, report, sample
from tests.unit.convert.cuda.spools import write
from warplens.convert.cpu.natives import UNKNOWN
from warplens.testing import spool_writer as sw


def test_frames_know_their_callers_and_places(tmp_path: Path) -> None:
    found = report(tmp_path, {"cpu_frame": FRAMES, "cpu_module": MODULES})
    assert found.columns(
        "frames", "frame", "parent", "depth", "kind", "function", "file", "line", "first_line"
    ) == [
        (1, None, 0, "python", "main", "/app.py", 7, 5),
        (2, 1, 1, "python", "load", "/app.py", 12, 10),
        (3, 2, 2, "native", "[libx.so.6]", None, None, None),
    ]
    assert found.columns("frames", "module", "path", "build_id", "address") == [
        (None, None, None, None),
        (None, None, None, None),
        ("libx.so.6", "/lib/libx.so.6", "abcd", 0x1234),
    ]
    (note,) = found.notes("no-symbols")
    assert "native code of /lib/libx.so.6 only has the name of its file" in note["message"]


def test_native_code_outside_of_files_and_of_the_kernel(tmp_path: Path) -> None:
    frames = [
        {"node": 1, "domain": 1, "address": 0x7F00},
        {"node": 2, "parent": 1, "domain": 3, "name": LOAD, "address": 0xFFFFFFFF81000000},
    ]
    found = report(tmp_path, {"cpu_frame": frames})
    assert found.columns("frames", "kind", "function", "module", "address") == [
        ("native", UNKNOWN, None, 0x7F00),
        ("kernel", "load", None, 0xFFFFFFFF81000000),
    ]


def test_frames_of_a_kernel_that_is_not_known_are_the_kernels(tmp_path: Path) -> None:
    frames = [{"node": 1, "domain": 3, "address": 0xFFFFFFFF81000010, "flags": 1}]
    found = report(tmp_path, {"cpu_frame": frames})
    assert found.columns("frames", "kind", "function", "module", "address", "path") == [
        ("kernel", "[kernel]", "[kernel]", 0xFFFFFFFF81000010, None)
    ]
    assert "native code of [kernel] only has the name of its file" in found.notes("no-symbols")[0]["message"]


def test_a_frame_without_a_name_has_a_word(tmp_path: Path) -> None:
    assert report(tmp_path, {"cpu_frame": [{"node": 1, "domain": 2, "name": 99}]}).columns(
        "frames", "function"
    ) == [("(unknown)",)]


@pytest.mark.parametrize("parent", [1, 2, 9, 0xFFFFFFFF])
def test_a_caller_that_cannot_be_is_none(tmp_path: Path, parent: int) -> None:
    """Itself, one that comes later, one that is not there: a tree has no cycles whatever the file says."""
    frames = [
        {"node": 1, "domain": 2, "name": MAIN, "parent": parent},
        {"node": 2, "domain": 2, "name": LOAD, "parent": 1},
    ]
    found = report(tmp_path, {"cpu_frame": frames})
    assert found.columns("frames", "frame", "parent", "depth") == [(1, None, 0), (2, 1, 1)]
    assert found.notes("damaged-frames")[0]["count"] == 1


def test_frames_that_are_written_twice_or_are_of_no_kind_are_left_out(tmp_path: Path) -> None:
    frames = [
        {"node": 1, "domain": 2, "name": MAIN},
        {"node": 1, "domain": 2, "name": LOAD},
        {"node": 2, "domain": 9},
        {"node": 0, "domain": 2},
    ]
    found = report(tmp_path, {"cpu_frame": frames})
    assert found.columns("frames", "frame", "function") == [(1, "main")]
    assert found.notes("damaged-frames")[0]["count"] == 3


def test_numbers_far_apart_are_found_too(tmp_path: Path) -> None:
    far = 0xFFFFFFF0
    frames = [{"node": 5, "domain": 2, "name": MAIN}, {"node": far, "parent": 5, "domain": 2, "name": LOAD}]
    found = report(
        tmp_path, {"cpu_frame": frames, "cpu_sample": [sample(10, stack=far), sample(20, stack=far - 1)]}
    )
    assert found.columns("frames", "frame", "parent", "depth") == [(5, None, 0), (far, 5, 1)]
    assert found.columns("samples", "stack") == [(far,), (None,)]
    assert found.notes("lost-stacks")[0]["count"] == 1


@pytest.mark.slow
def test_deep_stacks(tmp_path: Path) -> None:
    depth = 5_000
    frames = [
        {"node": number, "parent": number - 1, "domain": 2, "name": MAIN} for number in range(1, depth + 1)
    ]
    found = report(tmp_path, {"cpu_frame": frames})
    assert [row["depth"] for row in found["frames"]] == list(range(depth))


def test_keys_of_processes_differ(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    for pid in (10, 11):
        chunks = [
            sw.strings({1: "main"}),
            sw.wide("cpu_frame", FRAMES[:1]),
            sw.wide("cpu_sample", [sample(10, stack=1, domain=NATIVE)]),
        ]
        sw.write(folder, sw.spool(chunks, {"pid": pid, "start_ns": pid}), pid=pid)
    found = report(tmp_path, {"cpu_frame": FRAMES[:1]}, process={"pid": 12, "start_ns": 12})
    keys = [row["frame"] for row in found["frames"]]
    assert len(keys) == len(set(keys))
    assert {row["stack"] for row in found["samples"]} <= set(keys)
    assert all(row["frame"] >> 32 == row["process"] for row in found["frames"])


def test_stacks_of_cuda_calls(tmp_path: Path) -> None:
    wide = {
        "cpu_frame": FRAMES,
        "cuda_api": [
            {"start": 500 + number, "end": 600, "tid": 10, "correlation": 1 + number} for number in range(4)
        ],
        "cuda_backtrace": [
            {"correlation": 2, "frames": 3},
            {"correlation": 3, "frames": 0},
            {"correlation": 4, "frames": 77},
            {"correlation": 9, "frames": 1},
        ],
    }
    found = report(tmp_path, wide)
    assert found.columns("cuda_api", "correlation", "stack") == [(1, None), (2, 3), (3, None), (4, None)]
    assert found.notes("no-backtraces")[0]["count"] == 1
    assert found.notes("lost-stacks")[0]["count"] == 1


_FINISH = """
import sys
from pathlib import Path
from warplens.cli.light import import_lightly
import_lightly()
from warplens.convert.finish import finish
finish(Path(sys.argv[1]), Path(sys.argv[2]))
print(*{"pyarrow.compute", "duckdb"} & sys.modules.keys())
"""


def test_native_frames_load_nothing_that_takes_longer_than_they_do(tmp_path: Path) -> None:
    spool = write(tmp_path / "spool", {"cpu_frame": FRAMES, "cpu_module": MODULES}, texts=TEXTS)
    done = subprocess.run(
        [sys.executable, "-c", _FINISH, str(spool), str(tmp_path / "r.warplens")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == ""
