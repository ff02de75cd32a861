"""How GPUs spent their time in recordings of real GPUs, against plain loops over the files that other tools wrote."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.gpu_truth import Gpu, of_kineto, of_nsys
from tests.support.reports.real_recordings import some
from warplens import catalog
from warplens.importers.importing import import_file
from warplens.report import Report, Selection
from warplens.report import open as open_report

FOLDER = Path(__file__).resolve().parents[5] / "shared" / "data"
_LACKING = pytest.mark.skip(reason=f"the recordings of real GPUs are not here ({FOLDER})")
FILES: list[Any] = some(
    path.relative_to(FOLDER).as_posix()
    for path in (
        *sorted(FOLDER.glob("nsys/*.sqlite")),
        *sorted(FOLDER.glob("kineto/*.json.gz")),
        *FOLDER.glob("kineto/dlrm_8ranks/rank0.*"),
    )
) or [pytest.param("real ones", marks=_LACKING)]
Row = dict[str, Any]


class Both:
    """A recording as a report, and as plain loops read it."""

    def __init__(self, report: Report, gpus: dict[int, Gpu]) -> None:
        self.report, self.gpus = report, gpus

    def stat(self, name: str, **options: Any) -> list[tuple[int, Row]]:
        """Rows with the number of their GPU."""
        rows = (
            catalog.find("stats.tables", name).load().table(self.report, Selection(), **options).to_pylist()
        )
        (first, *_) = self.gpus
        return [
            (int(row["Device"].rpartition("(")[2][:-1]) if "Device" in row else first, row) for row in rows
        ]


@pytest.fixture(scope="module", params=FILES)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    file, report = FOLDER / request.param, tmp_path_factory.mktemp("real") / "run.warplens"
    import_file(file, report)
    return Both(open_report(report), of_nsys(file) if file.suffix == ".sqlite" else of_kineto(file))


def test_parts_and_overlap(both: Both) -> None:
    breakdown, overlaps = (
        dict(both.stat("temporal_breakdown")),
        both.stat("comm_comp_overlap") if _moves(both) else [],
    )
    assert set(breakdown) == set(both.gpus)
    for device, gpu in both.gpus.items():
        parts = gpu.parts()
        wanted: Counter[str] = Counter()
        for roles, time in parts.items():
            wanted[
                next((name for name in ("compute", "communication", "memory") if name in roles), "idle")
            ] += time
        row = breakdown[device]
        assert {
            name: row[f"{name.capitalize()} (ns)"] for name in ("compute", "communication", "memory", "idle")
        } == {name: wanted[name] for name in ("compute", "communication", "memory", "idle")}
        for what, row in ((row["What"], row) for number, row in overlaps if number == device):
            mine = {roles: time for roles, time in parts.items() if what in roles}
            hidden = sum(time for roles, time in mine.items() if "compute" in roles)
            assert [row["Total (ns)"], row["Hidden (ns)"], row["Blocking (ns)"]] == [
                sum(mine.values()),
                hidden,
                mine.get(frozenset({what}), 0),
            ]


def test_causes(both: Both) -> None:
    found: dict[int, Counter[str]] = {device: Counter() for device in both.gpus}
    for device, row in both.stat("gpu_utilization"):
        if row["State"] not in ("busy", "head", "tail"):
            found[device][row["State"]] += row["Total Time (ns)"]
    for device, gpu in both.gpus.items():
        assert found[device] == Counter({cause: time for cause, time in gpu.idle().items() if time})


def test_queues(both: Both) -> None:
    rows = {(device, row["Stream"]): row for device, row in both.stat("queue_length")}
    for (device, stream), row in rows.items():
        most, number, mean = both.gpus[device].queue(stream)
        assert (row["Max"], row["Launches"]) == (most, number)
        assert row["Avg"] == pytest.approx(mean)


def test_latencies(both: Both) -> None:
    rows = dict(both.stat("launch_latency"))
    for device, gpu in both.gpus.items():
        free, behind = gpu.latencies()
        row = rows[device]
        assert (row["Launches"], row["Free"], row["Queued"]) == (
            len(free) + len(behind),
            len(free),
            len(behind),
        )
        assert (row["Lat Med (ns)"], row["Lat Max (ns)"]) == (
            (statistics.median(free), max(free)) if free else (None, None)
        )
        assert row["Queue Avg (ns)"] == (pytest.approx(statistics.fmean(behind)) if behind else None)


def test_bandwidth(both: Both) -> None:
    rows = (
        {(device, row["Operation"]): row for device, row in both.stat("memory_bandwidth")}
        if _moves(both)
        else {}
    )
    for device, gpu in both.gpus.items():
        for direction, (size, number, time) in gpu.directions().items():
            row = rows[device, direction]
            assert row["Count"] == number
            assert row["Total (MB)"] == pytest.approx(size / 1e6)
            assert row["While Busy (MB/s)"] == pytest.approx(size / time * 1e3 if time else 0)


def _moves(both: Both) -> bool:
    return any(op.role == "memory" for gpu in both.gpus.values() for op in gpu.ops)
