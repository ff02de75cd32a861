"""The look-alike libcuda and libcupti behave as the real ones do, as far as we know them: see native/tests/fakes/README.md."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.conftest import Target
from tests.support.native.fake_cuda import VERSIONS, FakeCuda, log, truth, violations

pytestmark = [pytest.mark.require("gcc")]

(
    MEMCPY,
    MEMSET,
    DRIVER,
    RUNTIME,
    DEVICE,
    CONTEXT,
    KERNEL,
    OVERHEAD,
    PEER,
    UM,
    EVENT,
    STREAM,
    SYNC,
    EXTERNAL,
    MEMORY,
    POOL,
    GRAPH,
    JIT,
) = (*(1, 2, 4, 5, 8, 9, 10, 17, 22, 25, 36, 37, 38, 39, 49, 50, 51, 52),)
# Bytes in 11.8, 12.4, 13.0, 13.4, as the headers of these versions have them.
SIZES = {
    MEMCPY: (88, 88, 96, 112),
    MEMSET: (88, 88, 88, 104),
    DRIVER: (40, 40, 40, 40),
    RUNTIME: (40, 40, 40, 40),
    DEVICE: (176, 184, 184, 192),
    CONTEXT: (16, 24, 32, 40),
    KERNEL: (200, 208, 216, 248),
    OVERHEAD: (40, 56, 56, 56),
    PEER: (96, 96, 96, 96),
    EVENT: (24, 24, 56, 56),
    STREAM: (24, 24, 24, 24),
    SYNC: (40, 40, 56, 56),
    EXTERNAL: (24, 24, 24, 24),
    MEMORY: (120, 120, 128, 128),
    POOL: (72, 72, 80, 80),
    JIT: (64, 72, 72, 72),
}
EVERYTHING = (
    "malloc:4096 kernel:a:1000:1 h2d:4096:1 memset:1:64:1 event:1 sync_event pool module push:3:5"
    " kernel:b:1000:1 pop:3 peer:64:1 device_sync"
)


class Dumped(NamedTuple):
    """What the dumping tool was given: records (kind, bytes), its lines, and how the program ended."""

    records: list[tuple[int, bytes]]
    lines: list[str]
    code: int
    folder: Path

    def of(self, kind: int) -> list[bytes]:
        """The records of a kind."""
        return [record for found, record in self.records if found == kind]


def dump(
    folder: Path,
    target: Target,
    version: str,
    words: str,
    kinds: tuple[int, ...],
    traps: str = "",
    **more: str,
) -> Dumped:
    """Run the program with the tool that keeps every record."""
    fake = FakeCuda(version)
    program = target("cuda_program", *fake.words())
    tool = target("cupti_dump", "-shared", "-fPIC", "-Wl,--unresolved-symbols=ignore-all")
    out = folder / "dump"
    made = fake.environment(traps=traps, log=folder / "log", truth=folder / "truth", agent=tool)
    env = (
        os.environ
        | made
        | {"DUMP": str(out), "KINDS": ",".join(map(str, kinds)), "TRUTH": str(folder / "said")}
        | more
    )
    done = subprocess.run([program, *words.split()], env=env, check=False, timeout=60)
    data, records = out.read_bytes(), []
    while data:
        (size,) = struct.unpack_from("<I", data)
        record, data = data[4 : 4 + size], data[4 + size :]
        records.append((struct.unpack_from("<I", record)[0], record))
    return Dumped(records, (folder / "dump.txt").read_text().splitlines(), done.returncode, folder)


def times(record: bytes) -> tuple[int, int]:
    """Begin and end of a kernel or a copy."""
    return struct.unpack_from("<QQ", record, 16)


@pytest.mark.parametrize("version", VERSIONS)
def test_records_have_the_sizes_of_the_version(version: str, tmp_path: Path, target: Target) -> None:
    found = dump(tmp_path, target, version, EVERYTHING, tuple(SIZES))
    place = list(VERSIONS).index(version)
    assert {kind: {len(record) for record in found.of(kind)} for kind in SIZES} == {
        kind: {sizes[place]} for kind, sizes in SIZES.items()
    }
    assert found.lines[-1] == "dropped 0"
    assert violations(tmp_path / "log") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_functions_are_those_of_the_version(version: str) -> None:
    names = subprocess.run(
        ["nm", "-D", "--defined-only", FakeCuda(version).cupti], check=True, capture_output=True, text=True
    ).stdout
    found = {line.split()[2] for line in names.splitlines()}
    number = list(VERSIONS).index(version)
    since = {
        "cuptiSubscribe": 0,
        "cuptiGetGraphExecId": 1,
        "cuptiActivityEnableRuntimeApi": 2,
        "cuptiSubscribe_v2": 2,
        "cuptiActivityEnable_v2": 3,
    }
    assert {name: name in found for name in since} == {name: number >= first for name, first in since.items()}
    assert all(name.startswith("cu") for name in found)


def test_work_takes_its_time_in_the_order_of_its_stream(tmp_path: Path, target: Target) -> None:
    found = dump(
        tmp_path,
        target,
        "13.0",
        "kernel:a:50000:1:3 kernel:b:70000:2:2 h2d:25000:1 device_sync",
        (KERNEL, MEMCPY),
    )
    kernels = Counter(end - start for start, end in map(times, found.of(KERNEL)))
    assert kernels == {50000: 3, 70000: 2}
    assert [end - start for start, end in map(times, found.of(MEMCPY))] == [2000]
    lines = [line for line in truth(tmp_path / "truth") if line["what"] in {"kernel", "memcpy"}]
    for stream in {line["stream"] for line in lines}:
        mine = [line for line in lines if line["stream"] == stream]
        assert all(before["end"] <= after["start"] for before, after in pairwise(mine))


def test_a_flush_holds_back_buffers_with_work_that_runs(tmp_path: Path, target: Target) -> None:
    """It closes them, though: each thread begins a new one. A forced flush gives them as they are, without an end."""
    words = "kernel:short:1000:1 sync:1 kernel:long:60000000000:1 kill:10"
    assert dump(tmp_path, target, "13.0", words, (KERNEL,), FLUSH="0").of(KERNEL) == []
    for name, more, flag, ends in (
        ("forced", "", "1", [False, True]),
        ("behind", " kernel:short:1000:2 sync:2", "0", [False]),
    ):
        (tmp_path / name).mkdir()
        found = dump(tmp_path / name, target, "13.0", words + more, (KERNEL,), FLUSH=flag)
        assert [end == 0 for _, end in map(times, found.of(KERNEL))] == ends


def test_a_buffer_closed_by_a_flush_comes_with_a_later_flush(tmp_path: Path, target: Target) -> None:
    """Not by itself, as full ones do."""
    words = "kernel:short:1000:1 kernel:long:100000000:1 kill:10 sync:1 sleep:50"
    assert dump(tmp_path, target, "13.0", f"{words} _exit:0", (KERNEL,)).of(KERNEL) == []
    (tmp_path / "later").mkdir()
    assert len(dump(tmp_path / "later", target, "13.0", words, (KERNEL,), FLUSH="0").of(KERNEL)) == 2
    (tmp_path / "full").mkdir()
    full = dump(
        tmp_path / "full", target, "13.0", "kernel:many:1000:1:400 sync:1 sleep:50 _exit:0", (KERNEL,)
    )
    assert 300 <= len(full.of(KERNEL)) < 400


def test_the_record_of_work_comes_before_that_of_its_call(tmp_path: Path, target: Target) -> None:
    found = dump(tmp_path, target, "13.0", "kernel:a:1000:1:3 device_sync", (KERNEL, RUNTIME))
    order = [
        (kind, struct.unpack_from("<I", record, 92 if kind == KERNEL else 32)[0])
        for kind, record in found.records
        if kind == KERNEL or struct.unpack_from("<I", record, 4)[0] == 211
    ]
    assert [kind for kind, _ in order] == [KERNEL, RUNTIME] * 3
    assert all(work[1] == call[1] for work, call in zip(order[::2], order[1::2], strict=True))


def test_each_flush_makes_a_record_of_its_own(tmp_path: Path, target: Target) -> None:
    assert (
        len(
            dump(tmp_path, target, "13.0", f"kernel:a:1000:1 sync:1 {'kill:10 ' * 5}", (OVERHEAD,)).of(
                OVERHEAD
            )
        )
        == 5
    )


def test_graphs_by_node_or_as_a_whole(tmp_path: Path, target: Target) -> None:
    nodes = dump(tmp_path, target, "13.0", "graph:3:1000:1:2 device_sync", (KERNEL,))
    calls = Counter(struct.unpack_from("<I", record, 92)[0] for record in nodes.of(KERNEL))
    assert sorted(calls.values()) == [3, 3]
    (tmp_path / "whole").mkdir()
    whole = dump(
        tmp_path / "whole", target, "13.0", "graph:3:1000:1:2 kernel:a:1:1 device_sync", (KERNEL, GRAPH)
    )
    assert (len(whole.of(KERNEL)), len(whole.of(GRAPH))) == (1, 2)


def test_callbacks_enclose_the_drivers_calls(tmp_path: Path, target: Target) -> None:
    found = dump(tmp_path, target, "13.0", "kernel:a:1000:0", (KERNEL,), DOMAIN="2")
    assert [line for line in found.lines if line.startswith("callback 2 211 ")] == [
        "callback 2 211 0",
        "callback 2 211 1",
    ]


TRAPS = {
    "zero-times=2": lambda found: (
        Counter(times(record) == (0, 0) for record in found.of(KERNEL)) == {True: 5, False: 5}
    ),
    "odd-times=5": lambda found: (
        Counter(end < start for start, end in map(times, found.of(KERNEL))) == {True: 2, False: 8}
    ),
    "drop=5": lambda found: len(found.of(KERNEL)) == 8 and "dropped 2" in found.lines,
    "redeliver": lambda found: (
        max(Counter(struct.unpack_from("<I", record, 92)[0] for record in found.of(KERNEL)).values()) > 1
    ),
    "wrong-clock": lambda found: all(start > 10**18 for start, _ in map(times, found.of(KERNEL))),
    "busy": lambda found: "subscribe 39" in found.lines,
    "broken": lambda found: "subscribe 999" in found.lines,
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps_spring(trap: str, tmp_path: Path, target: Target) -> None:
    words = "kernel:a:1000:1:5 sync:1 sleep:30 kernel:a:1000:1:5 device_sync"
    assert TRAPS[trap](dump(tmp_path, target, "13.0", words, (KERNEL,), trap))
    (tmp_path / "without").mkdir()
    assert not TRAPS[trap](dump(tmp_path / "without", target, "13.0", words, (KERNEL,)))


def test_no_buffer_is_a_crash_before_12_9(tmp_path: Path, target: Target) -> None:
    assert (
        dump(tmp_path, target, "12.4", "kernel:a:1000:0 device_sync", (RUNTIME,), NO_BUFFER="1").code
        == -signal.SIGSEGV
    )
    (tmp_path / "later").mkdir()
    later = dump(tmp_path / "later", target, "13.0", "kernel:a:1000:0 device_sync", (RUNTIME,), NO_BUFFER="1")
    assert later.code == 0
    assert later.lines[-1] != "dropped 0"


def test_a_fork_child_has_no_cuda(tmp_path: Path, target: Target) -> None:
    found = dump(tmp_path, target, "13.0", "kernel:a:1000:0 fork kernel:b:1000:0", (KERNEL,))
    assert found.code == 0
    said = (tmp_path / "said").read_text()
    assert "error 3" in said
    assert any(
        "in a fork child" in line for line in log(tmp_path / "log")
    )  # the tool flushes in the child's exit, too


def test_a_script_needs_no_program(tmp_path: Path, target: Target) -> None:
    (tmp_path / "script").write_text(
        "kernel k_a 10000 0\nkernel k_b 50000 1\nh2d 1000000 0\nsync 1\nkernel k_a 10000 0\nsync 0\n"
    )
    found = dump(
        tmp_path,
        target,
        "13.0",
        "device_sync sleep:300",
        (KERNEL, MEMCPY),
        FAKE_CUDA_SCRIPT=str(tmp_path / "script"),
    )
    assert (len(found.of(KERNEL)), len(found.of(MEMCPY))) == (3, 1)
