"""Memory snapshots of PyTorch: totals, stacks, what is left; and pickles that want to run something."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import warplens
from tests.support.reports.memory_snapshot import FORWARD, LOG, TRAIN, entry, segment, snapshot, write
from warplens.errors import ReportError
from warplens.importers.importing import format_of, import_file

MB = 1_000_000
# Of 5 MB that were there before, 1 MB is freed. Each step takes 3 MB and gives them back, and keeps 1 MB of a log.
TRACE = [
    entry("segment_alloc", 0, 0x1000, 20 * MB),
    entry("free_requested", 5, 0x50, MB),
    entry("free_completed", 6, 0x50, MB),
    entry("alloc", 10, 0x100, 3 * MB, FORWARD, TRAIN),
    entry("alloc", 20, 0x200, MB, LOG, TRAIN),
    entry("free_completed", 30, 0x100, 3 * MB),
    entry("oom", 35, 0, 90 * MB),
    entry("alloc", 40, 0x100, 3 * MB, FORWARD, TRAIN),
    entry("alloc", 50, 0x300, MB, LOG, TRAIN),
    entry("free_completed", 60, 0x100, 3 * MB),
]
SEGMENTS = [segment(30 * MB, ("active_allocated", 6 * MB), ("inactive", 24 * MB))]
STEPS = [("START", "step", 8), ("END", "step", 32), ("START", "step", 38), ("END", "step", 62)]


@pytest.fixture
def report(tmp_path: Path) -> warplens.Report:
    path = write(tmp_path / "run.pickle", snapshot(TRACE, SEGMENTS, STEPS))
    assert format_of(path).id == "torch_memory"
    import_file(path, tmp_path / "run.warplens")
    return warplens.open(tmp_path / "run.warplens")


def test_totals_are_those_of_the_allocator(report: warplens.Report) -> None:
    rows = report.table("tensor_memory").to_pylist()
    assert [(row["start"], row["bytes"] // MB, row["allocated"] // MB) for row in rows] == [
        (6_000, -1, 4),
        (10_000, 3, 7),
        (20_000, 1, 8),
        (30_000, -3, 5),
        (40_000, 3, 8),
        (50_000, 1, 9),
        (60_000, -3, 6),
    ]
    assert {row["reserved"] for row in rows} == {30 * MB}
    assert [row["total"] for row in report.table("gpu_memory").to_pylist()] == [30 * MB]
    asked = """SELECT f.function, f.line, u.function AS caller, r.message FROM tensor_memory m JOIN frames f ON m.stack = f.frame
               JOIN frames u ON f.parent = u.frame JOIN nvtx_ranges r ON m.range = r.id WHERE m.start = 20000"""
    told = {"function": "log", "line": 30, "caller": "train", "message": "step"}
    assert report.sql(asked).to_pylist() == [told]
    messages = report.table("diagnostics").column("message").to_pylist()
    assert "GPU 0 was out of memory 1 time; the largest request was 85.8 MiB" in messages


def test_stacks_show_the_peak_and_what_each_step_leaves(report: warplens.Report) -> None:
    rows = report.stats("tensor_memory_sum", by="stack").to_pylist()
    columns = ("At Peak (MB)", "Left (MB)", "Steps", "Allocations")
    assert {row["Stack"]: tuple(row[name] for name in columns) for row in rows} == {
        "forward (model.py:5) < train (train.py:10)": (3.0, 0.0, 0, 2),
        "log (train.py:30) < train (train.py:10)": (2.0, 2.0, 2, 2),
        "[before the recording]": (4.0, 4.0, 0, 0),
    }


class Harm:
    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("it ran",))


@pytest.mark.parametrize("value", [{"segments": Harm()}, {"segments": Path}], ids=["a call", "a name"])
def test_a_pickle_with_more_than_plain_values_is_refused(
    tmp_path: Path, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "run.pickle", value)
    with pytest.raises(ReportError, match="it names"):
        import_file(path, tmp_path / "run.warplens")
    assert "it ran" not in capfd.readouterr().out


def test_a_broken_snapshot_is_named(tmp_path: Path) -> None:
    whole = pickle.dumps(snapshot(TRACE, SEGMENTS))
    path = tmp_path / "run.pickle"
    for place, content in enumerate([whole[: len(whole) // 2], pickle.dumps({"segments": [1]})]):
        path.write_bytes(content)
        with pytest.raises(ReportError, match=r"run\.pickle is broken"):
            import_file(path, tmp_path / f"run{place}.warplens")
    write(path, {"segments": [], "device_traces": [[]]})
    with pytest.raises(ReportError, match="has no history"):
        import_file(path, tmp_path / "empty.warplens")
