"""What real GPUs did, imported from nsys and exported for Perfetto: as much of it, as long, and with as many arrows as in the original."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.real_recordings import some
from tests.unit.exporters.perfetto_trace import decode
from warplens import catalog
from warplens.analysis.gpu.occupancy import gpu_rows, utilization
from warplens.cli.printing.gpu_summary import copies
from warplens.importers.importing import import_file
from warplens.report import open as open_report

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "nsys"
_LACKING = pytest.mark.skip(reason=f"the exports of real GPUs are not here ({FOLDER})")
REAL: list[Any] = some(path.name for path in sorted(FOLDER.glob("*.sqlite"))) or [
    pytest.param("real ones", marks=_LACKING)
]
CATEGORIES = {
    "cuda_kernel": ["CUPTI_ACTIVITY_KIND_KERNEL"],
    "cuda_memcpy": ["CUPTI_ACTIVITY_KIND_MEMCPY"],
    "cuda_memset": ["CUPTI_ACTIVITY_KIND_MEMSET"],
    "cuda_api": ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"],
}
ON_GPU = ("KERNEL", "MEMCPY", "MEMSET")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


def imported(name: str, folder: Path) -> Path:
    report = folder / f"{name}.warplens"
    if not report.exists():
        import_file(FOLDER / name, report)
    return report


@pytest.mark.parametrize("name", REAL)
def test_the_picture_is_that_of_the_original(name: str, folder: Path) -> None:
    out = folder / "out"
    catalog.find("exporters.formats", "perfetto").load().write(open_report(imported(name, folder)), out)
    decoded = decode(out)
    with closing(sqlite3.connect(f"file:{FOLDER / name}?mode=ro&immutable=1", uri=True)) as original:
        there = {row[0] for row in original.execute("SELECT name FROM sqlite_master")}
        for category, tables in CATEGORIES.items():
            selects = [f"SELECT end - start AS took FROM {table}" for table in tables if table in there]
            wanted = (
                Counter(row[0] for row in original.execute(" UNION ALL ".join(selects)))
                if selects
                else Counter()
            )
            assert (
                Counter(item.end - item.start for item in decoded.slices if item.categories == [category])
                == wanted
            ), category
        calls = " UNION ".join(
            f"SELECT globalTid / 0x1000000, correlationId FROM {table}"
            for table in CATEGORIES["cuda_api"]
            if table in there
        )
        work = " UNION ".join(
            f"SELECT globalPid / 0x1000000, correlationId FROM CUPTI_ACTIVITY_KIND_{kind}"
            for kind in ON_GPU
            if f"CUPTI_ACTIVITY_KIND_{kind}" in there
        )
        arrows = original.execute(
            f"SELECT count(*) FROM (SELECT * FROM ({calls}) INTERSECT SELECT * FROM ({work}))"
        ).fetchone()[0]
    begins = {arrow: item for item in decoded.slices for arrow in item.arrows}
    ends = [arrow for item in decoded.slices for arrow in item.arrows_end]
    assert len(begins) == len(ends) == arrows
    assert set(begins) == set(ends)
    top = {uuid: _process(decoded, uuid) for uuid in decoded.tracks}
    assert all(
        top[begins[arrow].track] == top[item.track] for item in decoded.slices for arrow in item.arrows_end
    )


@pytest.mark.parametrize("name", REAL)
def test_rows_hold_what_the_tables_hold(name: str, folder: Path) -> None:
    report = open_report(imported(name, folder))
    rows = gpu_rows(report, (report.origin, report.end + 1))
    tables = report.tables
    assert sum(row.number for row in rows) == sum(
        tables[table] for table in ("kernels", "memcpys", "memsets", "graphs")
    )
    assert all(
        value.min() >= 0 and value.max() <= 1
        for value in utilization(report, (report.origin, report.end), 97).values()
    )
    assert copies(report, "true").count(" at ") == len({row.what for row in rows} - {None, "Memset"})


def _process(decoded: Any, uuid: int) -> int:
    while decoded.tracks[uuid].parent_uuid:
        uuid = decoded.tracks[uuid].parent_uuid
    return int(decoded.tracks[uuid].process.pid)
