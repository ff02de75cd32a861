"""Every stat of CUDA on exports of nsys, imported, against plain SQL on the original: made-up ones, and real ones where they are."""

from __future__ import annotations

import itertools
import json
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.unit.stats import gpu_story
from tests.unit.stats.nsys_originals import (
    FOLDER,
    INSIDE,
    MADE_UP,
    MEMORY_KINDS,
    NAME,
    PID,
    REAL,
    Both,
    block,
    compare,
    groups,
    kernels,
    keyed,
    labelled,
)
from warplens.errors import MissingData
from warplens.importers.importing import import_file
from warplens.report import open as open_report


@pytest.fixture(scope="module", params=[*MADE_UP, *REAL])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("export")
    report, file = folder / "run.warplens", FOLDER / request.param
    if request.param in MADE_UP:
        file = gpu_story.tell(MADE_UP[request.param]).write(folder / "run.sqlite")
    import_file(file, report)
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as source:
        original = sqlite3.connect(":memory:")
        source.backup(original)
    with closing(original), open_report(report) as opened:
        original.execute("CREATE INDEX thread_time ON CUPTI_ACTIVITY_KIND_RUNTIME (globalTid, start)")
        yield Both(opened, original)


@pytest.mark.slow
def test_cuda_api_sum(both: Both) -> None:
    expected = groups((call[3:], call[2] - call[1]) for call in both.calls().values())
    compare(both.stat("cuda_api_sum"), ["Name"], expected, count="Num Calls")


def test_cuda_api_trace(both: Both) -> None:
    found = both.stat("cuda_api_trace")
    origin = both.report.origin
    assert sorted(
        (row["Pid"], row["Tid"], row["Start (ns)"] + origin, row["Duration (ns)"], row["CorrID"], row["Name"])
        for row in found
    ) == sorted(
        (pid, tid, start, end - start, correlation, name)
        for (pid, correlation), (tid, start, end, name) in both.calls().items()
    )
    assert [row["Start (ns)"] for row in found] == sorted(row["Start (ns)"] for row in found)
    results = both.sql("SELECT returnValue, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1")
    assert sorted(
        (value, len(rows)) for value, rows in groups((row["Result"], 1) for row in found).items()
    ) == sorted(results)


@pytest.mark.parametrize(
    ("options", "column"),
    [({}, "demangledName"), ({"base": True}, "shortName"), ({"mangled": True}, "mangledName")],
)
def test_cuda_gpu_kern_sum(both: Both, options: dict[str, bool], column: str) -> None:
    ran = kernels(both, column)
    expected = groups(((pid, device, name), duration) for pid, device, duration, name in ran)
    compare(both.stat("cuda_gpu_kern_sum", **options), ["PID", "Device", "Name"], expected, count="Instances")
    together = groups(((name,), duration) for _, _, duration, name in ran)
    compare(both.stat("cuda_gpu_kern_sum", all_gpus=True, **options), ["Name"], together, count="Instances")


def test_cuda_gpu_kern_gb_sum(both: Both) -> None:
    axes = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
    expected = groups(
        (
            (pid, device, "{:4} {:4} {:4}".format(*size[:3]), "{:4} {:4} {:4}".format(*size[3:]), name),
            duration,
        )
        for pid, device, duration, name, *size in kernels(both, "demangledName", *axes)
    )
    compare(
        both.stat("cuda_gpu_kern_gb_sum"),
        ["PID", "Device", "GridXYZ", "BlockXYZ", "Name"],
        expected,
        count="Instances",
    )


def test_cuda_gpu_mem_sums(both: Both) -> None:
    moved = [row for row in both.work({"MEMCPY": "bytes", "MEMSET": "bytes"}) if row[5] == "MEMORY_OPER"]
    keys = ["PID", "Device", "Operation"]
    times = groups(((pid, device, name), end - start) for pid, device, start, end, _, _, name, _ in moved)
    compare(both.stat("cuda_gpu_mem_time_sum"), keys, times, count="Count")
    sizes = groups(((pid, device, name), size) for pid, device, _, _, _, _, name, size in moved)
    compare(
        both.stat("cuda_gpu_mem_size_sum"), keys, sizes, count="Count", scale=1e6, unit="MB", shares=False
    )


def test_cuda_gpu_sum(both: Both) -> None:
    ran = both.work({})
    expected = groups(
        ((pid, device, category, name), end - start) for pid, device, start, end, _, category, name, _ in ran
    )
    compare(
        both.stat("cuda_gpu_sum"), ["PID", "Device", "Category", "Operation"], expected, count="Instances"
    )
    together = groups(((category, name), end - start) for _, _, start, end, _, category, name, _ in ran)
    compare(both.stat("cuda_gpu_sum", all_gpus=True), ["Category", "Operation"], together, count="Instances")


def test_cuda_api_gpu_sum(both: Both) -> None:
    ran = [((category, name), end - start) for _, _, start, end, _, category, name, _ in both.work({})]
    called = [(("CUDA_API", name), end - start) for _, start, end, name in both.calls().values()]
    compare(
        both.stat("cuda_api_gpu_sum", all_gpus=True),
        ["Category", "Operation"],
        groups(ran + called),
        count="Instances",
    )
    apart = [
        ((pid, device, category, name), end - start)
        for pid, device, start, end, _, category, name, _ in both.work({})
    ]
    apart += [
        ((pid, None, "CUDA_API", name), end - start)
        for (pid, _), (_, start, end, name) in both.calls().items()
    ]
    keys = ["PID", "Device", "Category", "Operation"]
    compare(both.stat("cuda_api_gpu_sum"), keys, groups(apart), count="Instances", shares=False)


def test_cuda_gpu_trace(both: Both) -> None:
    place, nowhere = "contextId, streamId", ", ".join(["NULL"] * 6)
    not_unified = "iif(copyKind > 10, NULL, {})"
    kinds = [not_unified.format(labelled(column, MEMORY_KINDS)) for column in ("srcKind", "dstKind")]
    placed = ", ".join(not_unified.format(column) for column in ("contextId", "streamId"))
    sizes = "gridX, gridY, gridZ, blockX, blockY, blockZ, registersPerThread, staticSharedMemory, dynamicSharedMemory"
    more = {
        "KERNEL": f"json_array({sizes}, NULL, NULL, NULL, {place})",
        "MEMCPY": f"json_array({nowhere}, NULL, NULL, NULL, bytes, {', '.join(kinds)}, {placed})",
        "MEMSET": f"json_array({nowhere}, NULL, NULL, NULL, bytes, NULL, {labelled('memKind', MEMORY_KINDS)}, {place})",
        "GRAPH_TRACE": f"json_array({nowhere}, NULL, NULL, NULL, NULL, NULL, NULL, {place})",
    }
    expected = [
        (pid, device, start, end - start, correlation, name, json.loads(facts))
        for pid, device, start, end, correlation, _, name, facts in both.work(more)
    ]
    found = []
    several = len({row[0] for row in expected}) > 1
    columns = [
        *(f"{what}{axis}" for what in ("Grd", "Blk") for axis in "XYZ"),
        "Reg/Trd",
        "StcSMem (MB)",
        "DymSMem (MB)",
        "Bytes (MB)",
    ]
    for row in both.stat("cuda_gpu_trace"):
        pid, device = row["PID"] if several else expected[0][0], int(row["Device"].rpartition("(")[2][:-1])
        facts = [
            row[name] if row[name] is None or "MB" not in name else round(row[name] * 1e6) for name in columns
        ]
        facts += [row[name] for name in ("SrcMemKd", "DstMemKd", "Ctx", "Strm")]
        found.append(
            (
                pid,
                device,
                row["Start (ns)"] + both.report.origin,
                row["Duration (ns)"],
                row["CorrId"],
                row["Name"],
                facts,
            )
        )
        if row["Bytes (MB)"] is not None:
            assert row["Throughput (MB/s)"] == pytest.approx(row["Bytes (MB)"] / (row["Duration (ns)"] / 1e9))
    assert [row[2] for row in found] == sorted(row[2] for row in found)
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def launches(both: Both) -> list[tuple[Any, ...]]:
    """Of each kernel with a call: pid, tid, device, call, kernel, call's begin and end, kernel's begin and end."""
    calls = both.calls()
    return [
        (
            pid,
            *calls[pid, correlation][:1],
            device,
            calls[pid, correlation][3],
            name,
            *calls[pid, correlation][1:3],
            start,
            end,
        )
        for pid, device, start, end, correlation, category, name, _ in both.work({})
        if category == "CUDA_KERNEL" and (pid, correlation) in calls
    ]


def test_cuda_kern_exec_trace(both: Both) -> None:
    origin = both.report.origin
    expected = [
        (
            pid,
            tid,
            device,
            call,
            name,
            begin - origin,
            back - begin,
            max(start - back, 0) or None,
            start - origin,
            end - start,
        )
        for pid, tid, device, call, name, begin, back, start, end in launches(both)
    ]
    columns = [
        "PID",
        "TID",
        "DevId",
        "API Function",
        "Kernel Name",
        "API Start (ns)",
        "API Dur (ns)",
        "Queue Dur (ns)",
    ]
    columns += ["Kernel Start (ns)", "Kernel Dur (ns)"]
    found = both.stat("cuda_kern_exec_trace")
    assert sorted((tuple(row[name] for name in columns) for row in found), key=repr) == sorted(
        expected, key=repr
    )
    for row in found:
        api, kernel = (
            row["API Start (ns)"] + row["API Dur (ns)"],
            row["Kernel Start (ns)"] + row["Kernel Dur (ns)"],
        )
        assert row["Total Dur (ns)"] == max(api, kernel) - row["API Start (ns)"]
        assert row["Queue Start (ns)"] == (None if row["Queue Dur (ns)"] is None else api)


def test_cuda_kern_exec_sum(both: Both) -> None:
    values: dict[tuple[Any, ...], dict[str, list[int]]] = {}
    for launch in launches(both):
        key, (begin, back, start, end) = launch[:5], launch[5:]
        kinds = values.setdefault(key, {kind: [] for kind in "TAQK"})
        kinds["T"].append(max(back, end) - begin)
        kinds["A"].append(back - begin)
        kinds["K"].append(end - start)
        if start > back:
            kinds["Q"].append(start - back)
    rows = both.stat("cuda_kern_exec_sum")
    found = keyed(rows, ["PID", "TID", "DevId", "API Name", "Kernel Name"])
    assert found.keys() == values.keys()
    for key, kinds in values.items():
        row = found[key]
        assert (row["Count"], row["QCount"]) == (len(kinds["T"]), len(kinds["Q"]))
        for kind, numbers in kinds.items():
            figures = [row[f"{kind}{name} (ns)"] for name in ("Avg", "Med", "Min", "Max", "StdDev")]
            assert figures == (pytest.approx(block(numbers)[2:], rel=1e-9) if numbers else [None] * 5)


def test_nvtx_gpu_proj_trace(both: Both) -> None:
    ranges = both.projected()
    if not ranges:
        with pytest.raises(MissingData):
            both.stat("nvtx_gpu_proj_trace")
        return
    origin = both.report.origin
    found = both.stat("nvtx_gpu_proj_trace")
    columns = [
        "Orig Start (ns)",
        "Orig Duration (ns)",
        "Style",
        "Name",
        "PID",
        "TID",
        "Projected Start (ns)",
        "Projected Duration (ns)",
        "NumGPUOps",
    ]
    expected = []
    for start, end, style, name, pid, tid, ran in ranges.values():
        first, last = min(one[0] for one in ran), max(one[1] for one in ran)
        expected.append(
            (start - origin, end - start, style, name, pid, tid, first - origin, last - first, len(ran))
        )
    assert sorted(tuple(row[name] for name in columns) for row in found) == sorted(expected)
    children = groups((row["ParentId"], 1) for row in found)
    open_ranges: dict[tuple[int, int], list[int]] = defaultdict(list)  # ends, of each thread
    for row in sorted(
        found, key=lambda row: (row["Orig Start (ns)"], -row["Orig Duration (ns)"], row["RangeId"])
    ):
        if row["Style"] == "StartEnd":
            assert (row["Lvl"], row["ParentId"], row["NumChild"]) == (0, None, 0)
            continue
        around, end = open_ranges[row["PID"], row["TID"]], row["Orig Start (ns)"] + row["Orig Duration (ns)"]
        while around and around[-1] <= row["Orig Start (ns)"]:
            around.pop()
        assert row["Lvl"] == len(around) == row["RangeStack"].count(":") - 1
        around.append(end)
        assert row["NumChild"] == len(children.get(row["RangeId"], ()))


def test_nvtx_gpu_proj_sum(both: Both) -> None:
    ranges = both.projected()
    if not ranges:
        with pytest.raises(MissingData):
            both.stat("nvtx_gpu_proj_sum")
        return
    spans = groups(
        ((one[3], one[2]), max(ran[1] for ran in one[-1]) - min(ran[0] for ran in one[-1]))
        for one in ranges.values()
    )
    lengths = groups(((one[3], one[2]), one[1] - one[0]) for one in ranges.values())
    numbers = groups(((one[3], one[2]), len(one[-1])) for one in ranges.values())
    rows = both.stat("nvtx_gpu_proj_sum")
    assert keyed(rows, ["Range", "Style"]).keys() == spans.keys()
    names = [
        "Total Proj Time (ns)",
        "Range Instances",
        *(f"Proj {name} (ns)" for name in ("Avg", "Med", "Min", "Max", "StdDev")),
    ]
    for row in rows:
        key = row["Range"], row["Style"]
        assert [row[name] for name in names] == pytest.approx(block(spans[key]), rel=1e-9)
        assert row["Total Range Time (ns)"] == sum(lengths[key])
        assert (row["Total GPU Ops"], row["Avg GPU Ops"]) == (
            sum(numbers[key]),
            pytest.approx(statistics.fmean(numbers[key])),
        )
    assert [row["Total Proj Time (ns)"] for row in rows] == sorted(
        (row["Total Proj Time (ns)"] for row in rows), reverse=True
    )


def test_nvtx_kern_sum(both: Both) -> None:
    ranges = both.projected()
    if not ranges:
        with pytest.raises(MissingData):
            both.stat("nvtx_kern_sum")
        return
    times: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    instances: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for number, (_, _, style, name, pid, tid, ran) in ranges.items():
        for start, end, kernel in (one[:3] for one in ran if one[3] == "CUDA_KERNEL"):
            times[name, style, pid, tid, kernel].append(end - start)
            instances[name, style, pid, tid, kernel].add(number)
    found = keyed(both.stat("nvtx_kern_sum"), ["NVTX Range", "Style", "PID", "TID", "Kernel Name"])
    assert found.keys() == times.keys()
    names = [
        "Total Time (ns)",
        "Kern Inst",
        *(f"{name} (ns)" for name in ("Avg", "Med", "Min", "Max", "StdDev")),
    ]
    for key, row in found.items():
        assert [row[name] for name in names] == pytest.approx(block(times[key]), rel=1e-9)
        assert row["NVTX Inst"] == len(instances[key])


def test_kernels_under_the_name_of_their_range(both: Both) -> None:
    """The innermost push/pop range around the launch: of those that contain the call the one that began last."""
    inner: dict[tuple[int, int], tuple[int, int, int, str]] = {}
    for number, start, end, _, name, pid, _, correlation in (
        both.sql(INSIDE.format("n.eventType = 59")) if both.has("NVTX_EVENTS") else ()
    ):
        candidate = (start, -end, number, name)
        if candidate > inner.get((pid, correlation), (-1 << 62, 0, 0, "")):
            inner[pid, correlation] = candidate
    prefixes = {key: f"{found[3]}/" for key, found in inner.items()}
    expected = groups(
        ((prefixes.get((pid, correlation), "") + name,), end - start)
        for pid, _, start, end, correlation, category, name, _ in both.work({})
        if category == "CUDA_KERNEL"
    )
    compare(
        both.stat("cuda_gpu_kern_sum", nvtx_name=True, all_gpus=True), ["Name"], expected, count="Instances"
    )


def unified(both: Both) -> list[tuple[int, int, str, int, int]]:
    """Pid, address, what, how much (bytes or faults), ns, of each event of unified memory."""
    kinds = labelled("copyKind", "11 HtoD 12 DtoH 13 DtoD")
    moved = f'SELECT {PID}, virtualAddress, {kinds}, bytes, "end" - start FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind > 10'
    parts = [moved] if both.has("CUPTI_ACTIVITY_KIND_MEMCPY") else []
    for where, number in (("CPU", "1"), ("GPU", "numberOfPageFaults")):
        if both.has(f"CUDA_UM_{where}_PAGE_FAULT_EVENTS"):
            parts.append(
                f"SELECT {PID}, address, '{where}', {number}, 0 FROM CUDA_UM_{where}_PAGE_FAULT_EVENTS"
            )
    return both.sql(" UNION ALL ".join(parts))


def test_um_total_sum(both: Both) -> None:
    events = unified(both)
    if not events:
        with pytest.raises(MissingData):
            both.stat("um_total_sum")
        return
    columns = {"HtoD": "Total HtoD Migration Size (MB)", "DtoH": "Total DtoH Migration Size (MB)"}
    columns |= {"CPU": "Total CPU Page Faults", "GPU": "Total GPU Page Faults"}
    rows = both.stat("um_total_sum")
    assert {row["PID"] for row in rows} == {event[0] for event in events}
    for row in rows:
        mine = [event for event in events if event[0] == row["PID"]]
        for kind, name in columns.items():
            assert row[name] == pytest.approx(
                sum(event[3] for event in mine if event[2] == kind)
                / (1e6 if kind.endswith(("D", "H")) else 1)
            )
        edges = [int(row[f"{which} Virtual Address"], 16) for which in ("Minimum", "Maximum")]
        assert edges == [min(event[1] for event in mine), max(event[1] for event in mine)]


def test_um_sum(both: Both) -> None:
    events = unified(both)
    if not events:
        with pytest.raises(MissingData):
            both.stat("um_sum")
        return
    rows = both.stat("um_sum", rows=-1)
    found = {(row["PID"], int(row["Virtual Address"], 16)): row for row in rows}
    assert found.keys() == {event[:2] for event in events}
    weights = []
    for key, row in found.items():
        amount = {
            kind: sum(event[3] for event in events if event[:2] == key and event[2] == kind)
            for kind in ("HtoD", "DtoH", "DtoD", "CPU", "GPU")
        }
        sizes = [row["HtoD Migration Size (MB)"], row["DtoH Migration Size (MB)"]]
        assert sizes == pytest.approx([amount["HtoD"] / 1e6, amount["DtoH"] / 1e6])
        assert (row["CPU Page Faults"], row["GPU Page Faults"]) == (amount["CPU"], amount["GPU"])
        moved, taken = (
            amount["HtoD"] + amount["DtoH"] + amount["DtoD"],
            sum(event[4] for event in events if event[:2] == key),
        )
        assert row["Migration Throughput (MB/s)"] == (
            pytest.approx(moved / 1e6 / (taken / 1e9)) if moved else None
        )
        weights.append((moved, amount["CPU"] + amount["GPU"]))
    assert weights == sorted(weights, reverse=True)
    assert both.stat("um_sum") == rows[:10]


def test_gpu_memory_sum(both: Both) -> None:
    if not both.has("CUDA_GPU_MEMORY_USAGE_EVENTS"):
        with pytest.raises(MissingData):
            both.stat("gpu_memory_sum")
        return
    kind = labelled("memKind", MEMORY_KINDS)
    step = "iif(memoryOperationType = 0, bytes, -bytes)"
    steps = both.sql(
        f"SELECT {PID}, deviceId, {kind}, start, {step} FROM CUDA_GPU_MEMORY_USAGE_EVENTS ORDER BY start"
    )
    found = keyed(both.stat("gpu_memory_sum"), ["PID", "Device", "Kind"])
    assert found.keys() == {step[:3] for step in steps}
    for key, row in found.items():
        mine = [step[3:] for step in steps if step[:3] == key]
        held = list(itertools.accumulate(size for _, size in mine))
        given = [size for _, size in mine if size > 0]
        sizes = [row[f"{name} (MB)"] for name in ("Peak", "End", "Allocated", "Largest")]
        assert sizes == pytest.approx([max(held) / 1e6, held[-1] / 1e6, sum(given) / 1e6, max(given) / 1e6])
        assert (row["Allocations"], row["Frees"]) == (len(given), len(mine) - len(given))
        assert row["Peak At (ns)"] + both.report.origin == mine[held.index(max(held))][0]


def test_gpu_metrics_sum(both: Both) -> None:
    if not both.has("GPU_METRICS"):
        with pytest.raises(MissingData):
            both.stat("gpu_metrics_sum")
        return
    names = "SELECT metricName FROM TARGET_INFO_GPU_METRICS n WHERE n.typeId = m.typeId AND n.metricId = m.metricId"
    values = groups(
        ((gpu, name), value)
        for gpu, name, value in both.sql(f"SELECT typeId & 0xFF, ({names}), value FROM GPU_METRICS m")
    )
    found = both.stat("gpu_metrics_sum")
    assert len(found) == len(values)
    for (gpu, name), readings in values.items():
        (row,) = [row for row in found if row["GPU"] == gpu and name.startswith(row["Metric"])]
        figures = [row[name] for name in ("Samples", "Avg", "Med", "Min", "Max", "StdDev")]
        assert figures == pytest.approx(block(readings)[1:])


def ranges(both: Both, style: int, *more: str) -> list[tuple[Any, ...]]:
    """Finished ranges of a style: their name with domain, start, end, thread, and what else is asked for."""
    if not both.has("NVTX_EVENTS"):
        pytest.skip("nothing was annotated")
    name = "coalesce(d.text, CASE WHEN n.domainId THEN 'domain ' || n.domainId ELSE '' END) || ':' || coalesce(s.value, n.text, '')"
    columns = ", ".join((name, "n.start", 'n."end"', "n.globalTid", *more))
    domain = "d.eventType = 75 AND d.domainId = n.domainId AND d.globalTid >> 24 = n.globalTid >> 24"
    return both.sql(
        f"""SELECT {columns} FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId LEFT JOIN NVTX_EVENTS d ON {domain}
        WHERE n.eventType = {style} AND n."end" IS NOT NULL ORDER BY n.globalTid, n.start, n."end" DESC"""
    )


@pytest.mark.parametrize(
    ("name", "styles"), [("nvtx_sum", (59, 60)), ("nvtx_pushpop_sum", (59,)), ("nvtx_startend_sum", (60,))]
)
def test_nvtx_sums(both: Both, name: str, styles: tuple[int, ...]) -> None:
    named = {59: "PushPop", 60: "StartEnd"}
    found = [(named[style], row) for style in styles for row in ranges(both, style)]
    if not found:
        with pytest.raises(MissingData):
            both.stat(name)
        return
    several = name == "nvtx_sum"
    expected = groups((((style, row[0]) if several else (row[0],)), row[2] - row[1]) for style, row in found)
    compare(both.stat(name), ["Style", "Range"] if several else ["Range"], expected, count="Instances")


def test_nvtx_pushpop_trace(both: Both) -> None:
    expected, around = [], list[tuple[int, int, list[int]]]()
    for name, start, end, thread in ranges(both, 59):
        while around and (around[-1][0] != thread or around[-1][1] <= start):
            around.pop()
        inside = [0, 0]  # how many ranges are directly inside, and for how long
        if around:
            around[-1][2][0] += 1
            around[-1][2][1] += end - start
        expected.append([start, end, (thread >> 24) & 0xFFFFFF, thread & 0xFFFFFF, name, len(around), inside])
        around.append((thread, end, inside))
    if not expected:
        with pytest.raises(MissingData):
            both.stat("nvtx_pushpop_trace")
        return
    origin = both.report.origin
    columns = ("PID", "TID", "Name", "Lvl")
    found = [
        [
            row["Start (ns)"] + origin,
            row["End (ns)"] + origin,
            *(row[name] for name in columns),
            [row["NumChild"], row["DurChild (ns)"]],
        ]
        for row in both.stat("nvtx_pushpop_trace")
    ]
    assert sorted(found) == sorted(expected)


def test_osrt_sum(both: Both) -> None:
    if not both.has("OSRT_API"):
        with pytest.raises(MissingData):
            both.stat("osrt_sum")
        return
    calls = both.sql(f'SELECT {NAME.format("nameId")}, "end" - start FROM OSRT_API')
    compare(
        both.stat("osrt_sum"),
        ["Name"],
        groups(((name,), duration) for name, duration in calls),
        count="Num Calls",
    )
