"""The exporter `nsys_sqlite`: what comes back from its file is what went in, and tools that read nsys' files can read ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.nsys_export import Export
from tests.unit.exporters import nsys_reports
from tests.unit.importers import cpu_story, story
from warpline import catalog
from warpline.importers.importing import import_file
from warpline.model.tables import TABLES
from warpline.query import Report
from warpline.query import open as open_report

REAL = sorted((Path(__file__).resolve().parents[4] / "shared" / "data" / "nsys").glob("*.sqlite"))
EXPORTER = catalog.find("exporters.formats", "nsys_sqlite")
# What the format has no place for; what is said about the file itself; and begins that are those of the first thing seen.
LOST = {
    "processes": {"parent", "parent_pid", "local_rank", "start", "end", "exit_status", "exited", "began", "ended", "not_recorded"},
    "threads": {"start"},
    "targets": {"boot_id", "memory"},
}
IDS = {("payloads", "event")}
ELSEWHERE = {"capture_windows", "clocks", "diagnostics", "nvtx_objects", "frames", "nvtx_schemas"}


@contextmanager
def round_trip(first: Report, folder: Path) -> Iterator[Report]:
    EXPORTER.load().write(first, folder / "x.sqlite")
    import_file(folder / "x.sqlite", folder / "back.warpline")
    with open_report(folder / "back.warpline") as back:
        yield back


def facts(report: Report) -> dict[str, list[tuple[Any, ...]]]:
    """All tables, whatever the keys are: processes are pids, threads tids, stacks texts, and an id is which row of its process it is."""
    pids = {row["process"]: row["pid"] for row in report.table("processes").to_pylist()}
    tids = {row["thread"]: (pids[row["process"]], row["tid"]) for row in report.table("threads").to_pylist()}
    stacks, placeless = stack_texts(report), stack_texts(report, "address")
    unfinished = pa.compute.invert(report.table("nvtx_ranges").column("unfinished")).to_pylist()
    found = {}
    for name, table in TABLES.items():
        if name in ELSEWHERE:
            continue
        rows = report.table(name)
        columns = []
        for column in table.columns:
            values = rows.column(column.name).to_pylist()
            if column.name in LOST.get(name, ()):
                continue
            if column.clock:
                values = [None if value is None else value - report.origin for value in values]
                if (name, column.name) == ("nvtx_ranges", "end"):
                    values = [value if known else None for value, known in zip(values, unfinished, strict=True)]
            elif column.name == "process":
                values = [pids[value] for value in values]
            elif column.name in ("thread", "end_thread"):
                values = [None if value is None else tids[value] for value in values]
            elif column.name == "stack":
                values = [(placeless if name == "syscalls" else stacks)[value] for value in values]  # chains of those have no addresses
            elif (
                (name, column.name) in IDS or column.name in ("id", "range", "parent") or (column.name == "api" and column.type == "int64")
            ):
                values = [None if value is None else (pids[value >> 32], value & 0xFFFFFFFF) for value in values]
            elif (name, column.name) == ("nvtx_ranges", "depth"):  # of start/end ranges a lane, as it is free
                values = [
                    None if kind == "StartEnd" else value for value, kind in zip(values, rows.column("style").to_pylist(), strict=True)
                ]
            columns.append([repr(value) for value in values])
        found[name] = sorted(zip(*columns, strict=True))
    return found


def stack_texts(report: Report, *without: str) -> dict[int | None, str | None]:
    frames = {row.pop("frame"): row for row in report.table("frames").to_pylist()}
    for row in frames.values():  # those that the format cannot hold
        for name in ("process", "first_line", "build_id", *without):
            row.pop(name)

    def text(key: int | None) -> str:
        return "" if key is None else text(frames[key]["parent"]) + repr([value for name, value in frames[key].items() if name != "parent"])

    return {None: None, **{key: text(key) for key in frames}}


def same(first: Report, back: Report) -> None:
    one, other = facts(first), facts(back)
    for name in one:
        assert other[name] == one[name], name
    said = {(row["severity"], row["message"]) for row in back.diagnostics.to_pylist()}
    assert {(row["severity"], row["message"]) for row in first.diagnostics.to_pylist()} <= said
    assert first.origin + first.manifests[0].realtime_offset == back.origin + back.manifests[0].realtime_offset


@pytest.mark.parametrize("seed", range(12))
def test_every_fact_that_the_format_can_carry_comes_back(seed: int, tmp_path: Path) -> None:
    with open_report(nsys_reports.make(Random(seed), tmp_path)) as first, round_trip(first, tmp_path) as back:
        same(first, back)


@pytest.mark.parametrize("tell", [story.tell, cpu_story.tell])
def test_an_imported_report_comes_back(tell: Any, tmp_path: Path) -> None:
    file = tell(Export()).write(tmp_path / "in.sqlite")
    import_file(file, tmp_path / "in.warpline")
    with open_report(tmp_path / "in.warpline") as first, round_trip(first, tmp_path) as back:
        one, other = facts(first), facts(back)
        assert {name for name in one if one[name] != other[name]} == set()


@pytest.mark.parametrize(
    "file", REAL or [pytest.param(Path("none"), marks=pytest.mark.skip(reason="no exports of real GPUs"))], ids=lambda path: path.name
)
def test_real_exports_come_back(file: Path, tmp_path: Path) -> None:
    import_file(file, tmp_path / "in.warpline")
    with open_report(tmp_path / "in.warpline") as first, round_trip(first, tmp_path) as back:
        one, other = facts(first), facts(back)
        assert {name for name in one if one[name] != other[name]} == set()
