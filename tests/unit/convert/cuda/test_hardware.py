"""Devices, contexts and streams, with the names that NVTX gave them."""

from __future__ import annotations

from pathlib import Path

from tests.unit.convert.cuda.spools import H200, TEXTS, report, work
from warplens.testing import spool_writer as sw

UUID = {
    "uuid_low": int.from_bytes(bytes(range(8)), "little"),
    "uuid_high": int.from_bytes(bytes(range(8, 16)), "little"),
}


def named(*definitions: tuple[str, int, str, int]) -> tuple[dict[int, str], bytes]:
    """Strings and records that give things (kind, handle) names at times."""
    texts = {
        100 + place: sw.definition(kind, api="cuda", identifier=handle, name=name)
        for place, (kind, handle, name, _) in enumerate(definitions)
    }
    records = [
        sw.define(100 + place, 1 + place, start=start) for place, (*_, start) in enumerate(definitions)
    ]
    return TEXTS | texts, sw.records(sw.NO_THREAD, records)


def test_a_device(tmp_path: Path) -> None:
    place = {
        "pci_domain": 0,
        "pci_bus": 0x0F,
        "pci_device": 0,
        "major": 9,
        "minor": 0,
        "multiprocessors": 132,
    }
    size = {"memory": 80 << 30, "memory_bandwidth": 3_000_000, "clock": 1_980_000, "l2_size": 50 << 20}
    found = report(tmp_path, {"cuda_device": [{"device": 1, "name": H200, **place, **size, **UUID}] * 2})
    (row,) = found["devices"]
    assert row["uuid"] == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert row["bus"] == "0000:0f:00.0"
    assert (
        row["device"],
        row["name"],
        row["compute_major"],
        row["compute_minor"],
        row["multiprocessors"],
    ) == (1, "NVIDIA H200", 9, 0, 132)
    assert (row["memory"], row["memory_bandwidth"], row["clock"], row["l2_size"]) == (
        80 << 30,
        3_000_000_000,
        1_980_000_000,
        50 << 20,
    )


def test_a_gpu_without_a_description_has_a_row(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        {
            "cuda_kernel": [work(0, 1_000, 1_100, device=1, context=2, stream=13)],
            "cuda_device": [{"device": 0, "name": H200}],
        },
    )
    assert found.columns("devices", "device", "name", "uuid", "bus") == [
        (0, "NVIDIA H200", None, None),
        (1, "GPU 1", None, None),
    ]
    assert found.columns("contexts", "context", "device", "null_stream", "name") == [(2, 1, None, None)]
    assert found.columns("streams", "context", "stream", "priority", "kind", "name") == [
        (2, 13, None, None, None)
    ]


def test_records_of_one_thing_complete_each_other(tmp_path: Path) -> None:
    nowhere = {"device": 0xFFFFFFFF, "null_stream": 0xFFFFFFFF}
    contexts = [
        {"context": 1, "handle": 0xC0, "start": 10, **nowhere},
        {"context": 1, "device": 1, "null_stream": 7},
        {"context": 2, "device": 0, "null_stream": 15},
        {"context": 2, "handle": 0xD0, **nowhere},
        {"context": 3, **nowhere},
    ]
    streams = [
        {"context": 1, "stream": 13, "handle": 0x50, "start": 20},
        {"context": 1, "stream": 13, "kind": 2, "priority": (1 << 32) - 5},
        {"context": 1, "stream": 7, "kind": 3},
        {"context": 1, "stream": 7},
    ]
    texts, names = named(
        ("cuda_context", 0xC0, "main", 30),
        ("cuda_stream", 0x50, "copies", 30),
        ("cuda_stream", 0, "the null one", 30),
    )
    ran = [work(0, 100, 200, device=4, context=3, stream=20)]
    found = report(
        tmp_path, {"cuda_context": contexts, "cuda_stream": streams, "cuda_kernel": ran}, names, texts=texts
    )
    assert found.columns("contexts", "context", "device", "null_stream", "name") == [
        (1, 1, 7, "main"),
        (2, 0, 15, None),
        (3, 4, None, None),
    ]
    assert found.columns("streams", "stream", "priority", "kind", "name") == [
        (7, 0, "null", "the null one"),
        (13, -5, "non-blocking", "copies"),
        (20, None, None, None),
    ]


def test_a_handle_that_is_used_again_names_the_later_stream(tmp_path: Path) -> None:
    streams = [
        {"context": 1, "stream": 13, "handle": 0x50, "start": 20, "kind": 1},
        {"context": 1, "stream": 14, "handle": 0x50, "start": 40, "kind": 1},
    ]
    texts, names = named(
        ("cuda_stream", 0x50, "first", 30),
        ("cuda_stream", 0x50, "second", 50),
        ("cuda_stream", 0x99, "nobody's", 60),
    )
    found = report(tmp_path, {"cuda_stream": streams}, names, texts=texts)
    assert found.columns("streams", "stream", "name") == [(13, "first"), (14, "second")]
