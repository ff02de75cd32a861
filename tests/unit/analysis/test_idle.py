"""Why GPUs did nothing: schedules whose gaps have known causes, and schedules of anything against one nanosecond after the other."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.reports.gpu_schedule import SCENES, Scenes, Schedule, Truth, chaos
from tests.support.thorough import few
from warplens.analysis.gpu.idle import CAUSES, Per, idle
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

Places = dict[tuple[int, int, int | None], list[Truth]]


def asked(report: Report, per: Per, selection: Selection | None = None, longer_than: int = 0) -> Places:
    found: Places = defaultdict(list)
    for row in idle(report, selection or Selection(), per=per, longer_than=longer_than).to_pylist():
        found[row["process"], row["device"], row["stream"]].append((row["start"], row["end"], row["cause"]))
    return found


def joined(pieces: list[Truth]) -> list[Truth]:
    """Pieces in order, those of one cause that touch as one."""
    result: list[Truth] = []
    for start, end, cause in sorted(pieces):
        if result and result[-1][1:] == (start, cause):
            result[-1] = (result[-1][0], end, cause)
        else:
            result.append((start, end, cause))
    return result


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("seed", few(range(3)))
def test_a_scene(tmp_path: Path, scene: str, seed: int) -> None:
    schedule = Schedule()
    stage = Scenes(schedule, random.Random(seed), device=0)
    for _ in range(3):
        stage.act(scene)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    inner = [piece for piece in asked(report, "stream")[0, 0, 7] if piece[2] not in ("head", "tail")]
    assert joined(inner) == joined(stage.truth)


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(12), 3))
def test_generated_schedules(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    schedule = Schedule()
    stages = {
        (process, device): Scenes(schedule, rng, device, process, thread=device)
        for process in range(rng.randrange(1, 3))
        for device in range(rng.randrange(1, 4))
    }
    for stage in stages.values():
        for scene in rng.choices(SCENES, k=20):
            stage.act(scene)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    by_stream, by_device = asked(report, "stream"), asked(report, "device")
    assert {key[:2] for key in by_stream} == set(stages)
    for (process, device), stage in stages.items():
        edges = [
            (0, stage.first, "head"),
            *([(stage.now, schedule.end, "tail")] if stage.now < schedule.end else []),
        ]
        assert joined(by_stream[process, device, 7]) == joined(stage.truth + edges)
        assert joined(by_device[process, device, None]) == joined(stage.alone + edges)


def test_a_gap_names_the_call_that_ended_it(tmp_path: Path) -> None:
    schedule = Schedule()
    schedule.kernel(schedule.call(0, 0, 10), 20, 100)
    schedule.kernel(schedule.call(1, 50, 60), 110, 200)
    late = schedule.call(1, 250, 260)
    schedule.kernel(late, 300, 400)
    schedule.kernel(None, 420, 500)
    rows = idle(open_report(schedule.write(tmp_path / "r.warplens")), Selection()).to_pylist()
    assert [
        (row["start"], row["end"], row["cause"], row["api"], row["thread"], row["waits"]) for row in rows
    ] == [
        (0, 20, "head", None, None, False),
        (100, 110, "launch-bound", 1, 1, True),
        (200, 250, "host-bound", 2, 1, False),
        (250, 300, "launch-bound", 2, 1, False),
        (400, 420, "unknown", None, None, False),
    ]
    assert rows[2]["gap"] == rows[3]["gap"] != rows[1]["gap"]


def slowly(schedule: Schedule, begin: int, finish: int) -> dict[tuple[int, int], Counter[str]]:
    """The definitions, for each nanosecond of each GPU by itself."""
    rows = schedule.rows
    work = [row for table in ("kernels", "memcpys", "memsets") for row in rows[table]]
    calls = {row["id"]: row for row in rows["cuda_api"]}
    copies = [
        row
        for row in rows["memcpys"]
        if row["start"] < finish and (row["end"] > begin or row["start"] >= begin)
    ]
    staged = {row["api"] for row in copies if row["source_kind"] == "Pageable"}
    synchronous = [
        row
        for row in calls.values()
        if row["name"] in ("cudaDeviceSynchronize", "cudaMemcpy", "cuCtxSynchronize") or row["id"] in staged
    ]
    found: dict[tuple[int, int], Counter[str]] = {}
    for process, device in {(row["process"], row["device"]) for row in work}:
        own = [row for row in work if (row["process"], row["device"]) == (process, device)]
        inside = [
            row for row in own if row["start"] < finish and (row["end"] > begin or row["start"] >= begin)
        ]
        counts = found[process, device] = Counter()
        first = min(max(row["start"], begin) for row in inside)
        last = max(min(row["end"], finish) for row in inside)
        for now in range(begin, finish):
            if any(row["start"] <= now < row["end"] for row in inside):
                continue
            if now < first or now >= last:
                counts["head" if now < first else "tail"] += 1
                continue
            opened = max(min(row["end"], finish) for row in inside if max(row["start"], begin) <= now)
            started = [max(row["start"], begin) for row in inside if max(row["start"], begin) > now]
            nexts = [row for row in inside if max(row["start"], begin) == min(started)]
            order = {"kernels": 0, "memcpys": 1, "memsets": 2}
            following = min(
                nexts,
                key=lambda row: (row["stream"], next(order[t] for t in order if row in rows[t]), row["id"]),
            )
            counts[
                _why(now, opened, min(started), following, calls, synchronous, following in rows["memcpys"])
            ] += 1
    return found


def _why(now: int, opened: int, closed: int, row: dict, calls: dict, synchronous: list, copy: bool) -> str:  # type: ignore[type-arg]
    call = calls.get(row["api"])
    if call is None:
        return "unknown"
    if now < call["start"]:
        waits = [one for one in synchronous if one["thread"] == call["thread"]]
        if any(one["start"] <= now < one["end"] for one in waits):
            return "sync-bound"
        # one that went on when the gap began; calls within calls are one
        across = [one for one in waits if one["start"] <= opened < one["end"]]
        if across:
            end = max(one["end"] for one in across)
            while any(one["start"] <= end < one["end"] for one in waits):
                end = max(one["end"] for one in waits if one["start"] <= end)
            begin = min(one["start"] for one in across)
            while any(one["start"] < begin <= one["end"] for one in waits):
                begin = min(one["start"] for one in waits if one["end"] >= begin)
            if now < end + min(opened - begin, 1_000_000):
                return "sync-bound"
        return "host-bound"
    return "copy-bound" if copy and row["source_kind"] == "Pageable" else "launch-bound"


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(4), 2))
def test_each_nanosecond(tmp_path: Path, seed: int) -> None:
    schedule = chaos(seed)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    for selection, begin, end in ((Selection(), 0, schedule.end), (Selection(time=(300, 900)), 300, 900)):
        wanted = slowly(schedule, begin, end)
        found = {key[:2]: Counter[str]() for key in asked(report, "device", selection)}
        for key, pieces in asked(report, "device", selection).items():
            for start, finish, cause in pieces:
                found[key[:2]][cause] += finish - start
        assert found == wanted


@pytest.mark.parametrize("per", ["device", "stream"])
@pytest.mark.parametrize("seed", range(4))
def test_causes_are_the_idle_time(tmp_path: Path, seed: int, per: Per) -> None:
    """Pieces do not overlap one another, nor the work, and nothing is left out."""
    schedule = chaos(100 + seed)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    work = [row for table in ("kernels", "memcpys", "memsets") for row in schedule.rows[table]]
    for (process, device, stream), pieces in asked(report, per).items():
        times: Counter[int] = Counter()
        for start, end, cause in pieces:
            assert cause in CAUSES
            assert start < end
            times.update(range(start, end))
        for row in work:
            if (row["process"], row["device"]) == (process, device) and stream in (None, row["stream"]):
                times.update(dict.fromkeys(range(row["start"], row["end"]), 0))
                assert not any(times[now] for now in range(row["start"], row["end"]))
        assert set(times) >= set(range(schedule.end))
        assert max(times.values()) == 1


def test_only_long_gaps(tmp_path: Path) -> None:
    report = open_report(chaos(7).write(tmp_path / "r.warplens"))
    whole, long = idle(report, Selection()), idle(report, Selection(), longer_than=20)
    lengths: Counter[tuple[int, int, int]] = Counter()
    for row in whole.to_pylist():
        lengths[row["process"], row["device"], row["gap"]] += row["end"] - row["start"]
    wanted = [row for row in whole.to_pylist() if lengths[row["process"], row["device"], row["gap"]] > 20]
    shown = [{name: value for name, value in row.items() if name != "gap"} for row in wanted]
    assert [
        {name: value for name, value in row.items() if name != "gap"} for row in long.to_pylist()
    ] == shown


def test_without_gpu_work_there_is_no_idle_time(tmp_path: Path) -> None:
    schedule = Schedule()
    schedule.call(0, 0, 10)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    assert idle(report, Selection()).num_rows == 0
    assert idle(report, Selection(), per="stream").column_names[-1] == "gap"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cause"),
    [("ncclDevKernel_AllReduce", "collective wait"), ("relu", "dependency"), (None, "copy-bound")],
)
def test_a_gpu_waits_for_another_one(tmp_path: Path, name: str | None, cause: str) -> None:
    """Events join streams of two GPUs of a process that have the same number."""
    schedule = Schedule()
    calls = [
        schedule.call(0, 10 * n, 10 * n + 5, which)
        for n, which in enumerate(["launch", "launch", "record", "wait", "launch"])
    ]
    schedule.kernel(calls[0], 50, 100, device=1)
    if name is None:
        schedule.copy(calls[1], 60, 5_000, device=0)
    else:
        schedule.kernel(calls[1], 60, 5_000, device=0, name=name)
    schedule.record(calls[2], 7, event=3, device=0)
    schedule.wait(calls[3], 7, event=3, device=1)
    schedule.kernel(calls[4], 5_200, 6_000, device=1)
    report = open_report(schedule.write(tmp_path / "r.warplens"))
    wanted = [(0, 50, "head"), (100, 5_000, cause), (5_000, 5_200, "launch-bound")]
    assert asked(report, "device")[0, 1, None] == asked(report, "stream")[0, 1, 7] == wanted


def test_an_event_that_is_recorded_again(tmp_path: Path) -> None:
    """A stream waits for the last record before its call, not for one after it."""
    schedule = Schedule()
    calls = [schedule.call(0, 10 * n, 10 * n + 5) for n in range(8)]
    schedule.kernel(calls[0], 100, 200)
    schedule.kernel(calls[1], 110, 30_000, stream=13)
    schedule.record(calls[2], 13, event=1)
    schedule.wait(calls[3], 7, event=1)
    schedule.kernel(calls[4], 30_100, 40_000)
    schedule.kernel(calls[5], 30_000, 90_000, stream=13)
    schedule.record(calls[6], 13, event=1)
    schedule.kernel(calls[7], 40_200, 40_300)
    found = asked(open_report(schedule.write(tmp_path / "r.warplens")), "stream")[0, 0, 7]
    assert found[1:4] == [
        (200, 30_000, "dependency"),
        (30_000, 30_100, "launch-bound"),
        (40_000, 40_200, "launch-bound"),
    ]


@pytest.mark.slow
def test_short_waits_are_not_guessed(tmp_path: Path) -> None:
    """What ended on another stream a few us before means nothing where the launch itself takes that long."""
    for length, cause in ((9_000, "launch-bound"), (30_000, "dependency")):
        schedule = Schedule()
        schedule.kernel(schedule.call(0, 0, 5), 10, 100)
        schedule.kernel(schedule.call(0, 6, 9), 10, 100 + length - 500, stream=13)
        schedule.kernel(schedule.call(0, 10, 15), 100 + length, 50_000)
        found = asked(open_report(schedule.write(tmp_path / f"{length}.warplens")), "stream")[0, 0, 7]
        assert found[1][2] == cause


def test_a_window_of_the_capture(tmp_path: Path) -> None:
    """GPU work belongs to the window in which it was launched; the idle time is that of the window and of its work."""
    picture = """
    windows  |          [start              ]
    main:api |(cudaLaunchKernel#1)(cudaLaunchKernel#2)(cudaLaunchKernel#3)
    gpu0.7   |   (a#1  )                (b#2   )              (c#3  )
    """
    timeline(tmp_path / "r.warplens", picture, tick_ns=1000, origin=0)
    report = open_report(tmp_path / "r.warplens").window(1)
    (place,) = asked(report, "device").values()
    begin, end = report.span
    times = sorted((start, finish) for start, finish, _ in place)
    busy = sum(row["end"] - row["start"] for row in report.table("kernels").to_pylist())
    assert sum(finish - start for start, finish in times) == end - begin - busy
    assert all(one[1] <= other[0] for one, other in pairwise(times))


def test_a_recording_that_begins_in_the_middle_has_earlier_work(tmp_path: Path) -> None:
    """The first kernel was launched at 1 ms and began at 400 ms: the GPU had something else to do. On a GPU that starts it had not."""
    from tests.support.reports.gpu_schedule import Schedule

    ms = 1_000_000
    for begins, wanted in (
        (400 * ms, {"head": 1 * ms, "earlier work": 399 * ms}),
        (ms + 30_000, {"head": ms + 30_000}),
    ):
        schedule = Schedule()
        call = schedule.call(0, 1 * ms, 1 * ms + 20_000, "cudaLaunchKernel")
        schedule.kernel(call, begins, begins + 50 * ms, stream=7)
        schedule.call(0, 0, 1_000, "cudaGetDevice")
        with open_report(schedule.write(tmp_path / f"{begins}.warplens")) as report:
            rows = idle(report, Selection()).to_pylist()
        assert {row["cause"]: row["end"] - row["start"] for row in rows if row["cause"] != "tail"} == wanted
