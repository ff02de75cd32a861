"""How GPUs spend their time: drawn schedules with known figures, and random ones against one nanosecond after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.gpu_schedule import Schedule, chaos
from tests.support.thorough import few
from tests.unit.stats.asking import stat
from warplens.analysis.gpu.kernel_classes import class_of
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report

Row = dict[str, Any]
STATS = (
    "gpu_utilization",
    "temporal_breakdown",
    "comm_comp_overlap",
    "kernel_breakdown",
    "queue_length",
    "launch_latency",
    "memory_bandwidth",
    "gpu_idle_trace",
)


@pytest.fixture
def overlapping(tmp_path: Path) -> Report:
    """A kernel of 0 to 100, communication from 50 to 180, a copy from 160 to 220, a gap, a kernel from 300 to 400."""
    schedule = Schedule()
    launches = [schedule.call(0, 10 * n, 10 * n + 5) for n in range(4)]
    schedule.kernel(launches[0], 40, 140, stream=7, name="sgemm")
    schedule.kernel(launches[1], 90, 220, stream=13, name="ncclDevKernel_AllReduce")
    schedule.copy(launches[2], 200, 260, stream=15, bytes=6000)
    late = schedule.call(0, 280, 290)
    schedule.kernel(late, 340, 440, stream=7, name="relu")
    schedule.end = 500
    return open_report(schedule.write(tmp_path / "r.warplens"))


def test_gpu_utilization(overlapping: Report) -> None:
    rows = stat(overlapping, "gpu_utilization")
    assert [
        (row["State"], row["Total Time (ns)"], row["Count"], row["Max (ns)"], row["Time (%)"]) for row in rows
    ] == [
        ("busy", 320, 2, 220, pytest.approx(64)),
        ("launch-bound", 60, 1, 60, pytest.approx(12)),
        ("tail", 60, 1, 60, pytest.approx(12)),
        ("head", 40, 1, 40, pytest.approx(8)),
        ("host-bound", 20, 1, 20, pytest.approx(4)),
    ]
    streams = stat(overlapping, "gpu_utilization", by="stream")
    assert {row["Stream"]: row["Total Time (ns)"] for row in streams if row["State"] == "busy"} == {
        7: 200,
        13: 130,
        15: 60,
    }
    assert all(
        sum(row["Total Time (ns)"] for row in streams if row["Stream"] == stream) == 500
        for stream in (7, 13, 15)
    )


def test_a_selection_of_gpu_utilization(overlapping: Report) -> None:
    rows = stat(overlapping, "gpu_utilization", Selection(time=(250, 350)))
    assert {row["State"]: row["Total Time (ns)"] for row in rows} == {
        "busy": 20,
        "host-bound": 20,
        "launch-bound": 60,
    }


def test_temporal_breakdown(overlapping: Report) -> None:
    (row,) = stat(overlapping, "temporal_breakdown")
    names = ("Compute", "Communication", "Memory", "Idle", "Span")
    assert [row[f"{name} (ns)"] for name in names] == [200, 80, 40, 80, 400]
    assert row["Compute (%)"] == pytest.approx(50)


def test_comm_comp_overlap(overlapping: Report) -> None:
    names = ("Total", "Hidden", "Exposed", "Blocking")
    rows = {
        row["What"]: [row[f"{name} (ns)"] for name in names] for row in stat(overlapping, "comm_comp_overlap")
    }
    assert rows == {"communication": [130, 50, 80, 60], "memory": [60, 0, 60, 40]}
    streams = stat(overlapping, "comm_comp_overlap", by="stream")
    assert [(row["Stream"], row["What"], row["Hidden (ns)"], row["Overlap (%)"]) for row in streams] == [
        (13, "communication", 50, pytest.approx(38.46, abs=0.01)),
        (15, "memory", 0, 0),
    ]


def test_kernel_breakdown(overlapping: Report) -> None:
    rows = stat(overlapping, "kernel_breakdown")
    assert [(row["Kind"], row["Total Time (ns)"], row["Union (ns)"], row["Instances"]) for row in rows] == [
        ("communication", 130, 130, 1),
        ("elementwise", 100, 100, 1),
        ("gemm", 100, 100, 1),
        ("copy", 60, 60, 1),
    ]
    assert sum(row["Time (%)"] for row in rows) == pytest.approx(100)
    assert rows[0]["Span (%)"] == pytest.approx(32.5)


def test_gpu_idle_trace(overlapping: Report) -> None:
    rows = stat(overlapping, "gpu_idle_trace")
    assert [
        (row["Start (ns)"], row["Duration (ns)"], row["Gap (ns)"], row["Cause"], row["Call"]) for row in rows
    ] == [
        (0, 40, 40, "head", None),
        (260, 20, 80, "host-bound", "cudaLaunchKernel"),
        (280, 60, 80, "launch-bound", "cudaLaunchKernel"),
        (440, 60, 60, "tail", None),
    ]
    assert [row["TID"] for row in rows] == [None, 1000, 1000, None]
    assert len(stat(overlapping, "gpu_idle_trace", longer_than=70)) == 2
    with pytest.raises(UsageError, match="by=rank"):
        stat(overlapping, "gpu_idle_trace", by="rank")


def test_queue_length(tmp_path: Path) -> None:
    """Three calls at 0, 10 and 20, a graph of two nodes at 30; they begin at 100, 110, 130, 140."""
    schedule = Schedule()
    calls = [schedule.call(0, 10 * n, 10 * n + 8) for n in range(4)]
    for number, begin in enumerate((100, 110, 130)):
        schedule.kernel(calls[number], begin, begin + 10)
    schedule.kernel(calls[3], 140, 145)
    schedule.kernel(calls[3], 150, 160)
    schedule.kernel(None, 170, 180)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    (row,) = stat(report, "queue_length", limit=3)
    area = 10 * 1 + 10 * 2 + 10 * 3 + 70 * 4 + 10 * 3 + 20 * 2 + 10 * 1
    assert (row["Max"], row["Launches"], row["Span (ns)"], row["Med"]) == (4, 4, 140, 3)
    assert row["Avg"] == pytest.approx(area / 140)
    assert (row["Full (ns)"], row["Blocked (ns)"], row["Blocked Calls"], row["Empty (%)"]) == (90, 16, 2, 0)
    assert stat(report, "queue_length")[0]["Full (ns)"] == 0
    with pytest.raises(UsageError, match="limit"):
        stat(report, "queue_length", limit=0)


def test_launch_latency(tmp_path: Path) -> None:
    schedule = Schedule()
    schedule.kernel(schedule.call(0, 0, 10), 30, 35)  # free; shorter than its call
    schedule.kernel(schedule.call(0, 40, 50), 45, 200)  # free, begins within the call
    schedule.kernel(schedule.call(0, 60, 70), 210, 300)  # behind another
    schedule.copy(schedule.call(0, 310, 320), 330, 340)
    schedule.kernel(schedule.call(0, 400, 410), 600, 700)  # free and late
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    (row,) = stat(report, "launch_latency", late=150, slow_call=9)
    assert (row["Launches"], row["Free"], row["Queued"]) == (4, 3, 1)
    assert [row[f"Lat {name} (ns)"] for name in ("Avg", "Med", "Min", "Max")] == [
        pytest.approx(235 / 3),
        30,
        5,
        200,
    ]
    assert (row["Queue Avg (ns)"], row["Short"], row["Slow Calls"], row["Late"]) == (150, 1, 4, 1)


@pytest.mark.slow
def test_memory_bandwidth(tmp_path: Path) -> None:
    schedule = Schedule()
    schedule.copy(None, 0, 100, bytes=200_000)
    schedule.copy(None, 50, 150, stream=13, bytes=100_000)
    schedule.copy(None, 200, 210, bytes=100)
    schedule.copy(None, 300, 400, kind="DtoD", bytes=1_000_000)
    schedule.rows.setdefault("memsets", [])
    schedule.end = 1000
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    within, to_device = sorted(stat(report, "memory_bandwidth"), key=lambda row: row["Operation"])
    assert (to_device["Total (MB)"], to_device["Count"]) == (pytest.approx(0.3001), 3)
    assert to_device["While Busy (MB/s)"] == pytest.approx(300_100 / 160 * 1000)
    assert to_device["Peak (MB/s)"] == pytest.approx(2_000_000)
    assert to_device["Busy (%)"] == pytest.approx(16)
    assert within["Avg (MB/s)"] == pytest.approx(1_000_000)
    bins = [row for row in stat(report, "memory_bandwidth", bins=10) if "Host-to" in row["Operation"]]
    assert [row["Start (ns)"] for row in bins] == list(range(0, 1000, 100))
    assert [row["Total (MB)"] * 1e6 for row in bins[:4]] == pytest.approx([250_000, 50_000, 100, 0])
    part = {row["Operation"]: row for row in stat(report, "memory_bandwidth", Selection(time=(50, 350)))}
    assert part["[CUDA memcpy Host-to-Device]"]["Total (MB)"] == pytest.approx(0.2001)
    assert part["[CUDA memcpy Device-to-Device]"]["Total (MB)"] == pytest.approx(0.5)
    with pytest.raises(UsageError, match="bins"):
        stat(report, "memory_bandwidth", bins=-1)


def test_the_peak_of_a_known_device(tmp_path: Path) -> None:
    schedule = Schedule()
    schedule.memset(None, 0, 100)
    report = open_report(schedule.write(tmp_path / "r.warplens", memory_bandwidth=3_000_000_000_000))
    (row,) = stat(report, "memory_bandwidth")
    assert row["Device Peak (MB/s)"] == pytest.approx(3_000_000)


@pytest.mark.parametrize("name", STATS)
def test_without_gpu_work_the_stat_names_the_missing_data(tmp_path: Path, name: str) -> None:
    schedule = Schedule()
    schedule.call(0, 0, 10)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    with pytest.raises(MissingData, match="does not contain"):
        stat(report, name)
    with pytest.raises(UsageError, match=r"by=colour.*device"):
        stat(report, name, by="colour")


class Slow:
    """What each nanosecond of each GPU (or stream) is filled with, by itself."""

    def __init__(self, schedule: Schedule, per_stream: bool) -> None:
        self.work: dict[tuple[int, ...], list[tuple[int, int, str, Row]]] = defaultdict(list)
        for table in ("kernels", "memcpys", "memsets"):
            for row in schedule.rows[table]:
                kind = (
                    class_of(row["name"])
                    if table == "kernels"
                    else {"memcpys": "copy", "memsets": "memset"}[table]
                )
                place = (row["process"], row["device"], *((row["stream"],) if per_stream else ()))
                self.work[place].append((row["start"], row["end"], kind, row))

    def running(self, place: tuple[int, ...]) -> dict[int, set[str]]:
        """What kinds run in each nanosecond between the first and the last operation."""
        rows = self.work[place]
        times: dict[int, set[str]] = {
            now: set() for now in range(min(row[0] for row in rows), max(row[1] for row in rows))
        }
        for start, end, kind, _ in rows:
            for now in range(start, end):
                times[now].add(kind)
        return times


def placed(row: Row, stream: bool) -> tuple[int, ...]:
    return row["PID"] - 100, int(row["Device"].split("(")[1][:-1]), *((row["Stream"],) if stream else ())


@pytest.mark.slow
@pytest.mark.parametrize("by", ["device", "stream"])
@pytest.mark.parametrize("seed", few(range(3)))
def test_parts_of_random_schedules(tmp_path: Path, seed: int, by: str) -> None:
    schedule = chaos(seed)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    slow = Slow(schedule, by == "stream")
    parts = {placed(row, by == "stream"): row for row in stat(report, "temporal_breakdown", by=by)}
    kinds = {
        (placed(row, by == "stream"), row["Kind"]): row for row in stat(report, "kernel_breakdown", by=by)
    }
    busy = {
        placed(row, by == "stream"): row["Total Time (ns)"]
        for row in stat(report, "gpu_utilization", by=by)
        if row["State"] == "busy"
    }
    assert set(parts) == set(slow.work) == set(busy)
    for place in slow.work:
        times = slow.running(place)
        wanted: Counter[str] = Counter()
        for running in times.values():
            compute, communication = running - {"copy", "memset", "communication"}, "communication" in running
            wanted[
                "Compute"
                if compute
                else "Communication"
                if communication
                else "Memory"
                if running
                else "Idle"
            ] += 1
        row = parts[place]
        assert {name: row[f"{name} (ns)"] for name in ("Compute", "Communication", "Memory", "Idle")} == {
            name: wanted[name] for name in ("Compute", "Communication", "Memory", "Idle")
        }
        assert row["Span (ns)"] == len(times)
        assert busy[place] == sum(1 for running in times.values() if running)
        for kind in {row[2] for row in slow.work[place]}:
            row = kinds[place, kind]
            lengths = sorted(end - start for start, end, one, _ in slow.work[place] if one == kind)
            assert (row["Total Time (ns)"], row["Instances"]) == (sum(lengths), len(lengths))
            assert (row["Min (ns)"], row["Max (ns)"]) == (lengths[0], lengths[-1])
            assert row["Union (ns)"] == sum(1 for running in times.values() if kind in running)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_overlap_of_random_schedules(tmp_path: Path, seed: int) -> None:
    schedule = chaos(50 + seed)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    whole, slow = Slow(schedule, False), Slow(schedule, True)
    ours = {"communication": {"communication"}, "memory": {"copy", "memset"}}
    for row in stat(report, "comm_comp_overlap"):
        times = [kinds for kinds in whole.running(placed(row, False)).values() if kinds & ours[row["What"]]]
        wanted = [kinds for kinds in times if kinds - {"communication", "copy", "memset"}]
        alone = [kinds for kinds in times if not kinds - ours[row["What"]]]
        assert [row[f"{name} (ns)"] for name in ("Total", "Hidden", "Blocking")] == [
            len(times),
            len(wanted),
            len(alone),
        ]
    for row in stat(report, "comm_comp_overlap", by="stream"):
        place = placed(row, True)
        others = [slow.running(key) for key in slow.work if key[:2] == place[:2] and key != place]
        own = {now: kinds for now, kinds in slow.running(place).items() if kinds & ours[row["What"]]}
        beside = {now: set().union(*(other.get(now, set()) for other in others)) for now in own}
        under = [now for now in own if (own[now] | beside[now]) - {"communication", "copy", "memset"}]
        by_itself = [now for now in own if not own[now] - ours[row["What"]] and not beside[now]]
        assert [row[f"{name} (ns)"] for name in ("Total", "Hidden", "Blocking")] == [
            len(own),
            len(under),
            len(by_itself),
        ]


@pytest.mark.slow
@pytest.mark.parametrize("by", ["device", "stream", "process"])
@pytest.mark.parametrize("seed", few(range(3)))
def test_queues_of_random_schedules(tmp_path: Path, seed: int, by: str) -> None:
    schedule = chaos(80 + seed)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    calls = {row["id"]: row for row in schedule.rows["cuda_api"]}
    waiting: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for table in ("kernels", "memcpys", "memsets"):
        for row in schedule.rows[table]:
            if row["api"] is not None:
                waiting[row["process"], row["device"], row["stream"], row["api"]].append(
                    (calls[row["api"]]["start"], row["start"])
                )
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for key, times in waiting.items():
        called, began = min(times)
        groups[key[: {"process": 1, "device": 2, "stream": 3}[by]]].append((called, max(began, called)))
    rows = stat(report, "queue_length", by=by)
    assert len(rows) == len(groups)
    for row in rows:
        place = (row["PID"] - 100,) if by == "process" else placed(row, by == "stream")
        own = groups[place]
        lengths = [
            sum(1 for called, began in own if called <= now < began)
            for now in range(min(called for called, _ in own), max(began for _, began in own))
        ]
        assert (row["Max"], row["Launches"], row["Span (ns)"]) == (max(lengths), len(own), len(lengths))
        assert row["Avg"] == pytest.approx(sum(lengths) / len(lengths))
        assert row["Med"] in (sorted(lengths)[(len(lengths) - 1) // 2], sorted(lengths)[len(lengths) // 2])
        assert row["Empty (%)"] == pytest.approx(100 * lengths.count(0) / len(lengths))


@pytest.mark.slow
def test_processes_and_ranks_add_up_their_gpus(tmp_path: Path) -> None:
    schedule = chaos(3)
    schedule.ranks = {0: 5, 1: 5}
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    for name, column in (
        ("gpu_utilization", "Total Time (ns)"),
        ("temporal_breakdown", "Compute (ns)"),
        ("comm_comp_overlap", "Hidden (ns)"),
        ("kernel_breakdown", "Union (ns)"),
        ("launch_latency", "Launches"),
        ("memory_bandwidth", "Total (MB)"),
    ):
        sums = {
            by: sum(row[column] for row in stat(report, name, by=by)) for by in ("device", "process", "rank")
        }
        assert sums["device"] == pytest.approx(sums["process"])
        assert sums["device"] == pytest.approx(sums["rank"])
        of_processes, of_ranks = stat(report, name, by="process"), stat(report, name, by="rank")
        assert {row["PID"] for row in of_processes} == {100, 101}
        assert "PID" not in of_ranks[0]
        assert {row["Rank"] for row in of_ranks} == {5}
