"""Traces of real GPUs, imported, say what their JSON says. Their folder lies beside the checkout, or these are skipped."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.real_recordings import some
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "kineto"
TRACES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json.gz"))
every_trace = pytest.mark.parametrize("name", some(TRACES) or ["none"])
pytestmark = pytest.mark.skipif(not TRACES, reason=f"the traces of real GPUs are not here ({FOLDER})")

KERNELS = {
    "hta_df_index_resolver.json.gz": 19370,
    "hta_trace_diff_control.json.gz": 8568,
    "hta_trace_diff_test.json.gz": 9876,
    "tracelens_b200_eager.json.gz": 768,
    "tracelens_h100_qwen15_05b.json.gz": 1465,
    "tracelens_mi300_resnet_actckpt.json.gz": 2995,
}
TABLES = {
    "kernel": "kernels",
    "gpu_memcpy": "memcpys",
    "gpu_memset": "memsets",
    "cuda_runtime": "cuda_api",
    "cuda_driver": "cuda_api",
    "cpu_op": "ops",
    "python_function": "python_calls",
    "cpu_instant_event": "tensor_memory",
    "overhead": "overhead",
    "cuda_sync": "syncs",
}
EXPLAINED = {"no-call", "not-imported"}
Both = Callable[[str], tuple[Report, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Return a trace as a report and as its events."""

    @cache
    def opened(name: str) -> tuple[Report, list[dict[str, Any]]]:
        report = tmp_path_factory.mktemp("real") / "run.warplens"
        import_file(FOLDER / name, report)
        with gzip.open(FOLDER / name) as file:
            return open_report(report), json.load(file)["traceEvents"]

    return opened


def ns(microseconds: float) -> int:
    return round(microseconds * 1000)


@every_trace
def test_every_event_has_its_row(name: str, both: Both) -> None:
    report, events = both(name)
    counts = Counter(TABLES[event["cat"]] for event in events if event.get("cat") in TABLES)
    assert {table: report.tables[table] for table in counts} == counts
    assert counts["kernels"] == KERNELS.get(name, counts["kernels"])
    annotated = sum(event.get("cat") == "user_annotation" for event in events)
    assert report.tables["nvtx_ranges"] == counts["ops"] + annotated
    assert {row["code"] for row in report.diagnostics.to_pylist()} <= EXPLAINED


@every_trace
def test_kernels_have_their_arguments_and_calls(name: str, both: Both) -> None:
    report, events = both(name)
    calls = {
        event["args"]["correlation"]: ns(event["ts"])
        for event in events
        if event.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    expected: Counter[Any] = Counter()
    for event in events:
        if event.get("cat") == "kernel":
            args = event["args"]
            grid, block = args.get("grid", [0] * 3), args.get("block", [0] * 3)
            began = calls.get(args["correlation"])
            shape = (*grid, *block, args.get("registers per thread", 0), args.get("shared memory", 0))
            expected[
                (
                    event["name"],
                    ns(event["ts"]),
                    args["device"],
                    args["stream"],
                    args["correlation"],
                    began,
                    *shape,
                )
            ] += 1
    axes = ", ".join(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
    rows = report.sql(
        f'SELECT demangled, k."start", device, stream, k.correlation, a."start", {axes}, registers, dynamic_shared '
        "FROM kernels k LEFT JOIN cuda_api a ON k.api = a.id"
    )
    found = Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    assert found == expected


@every_trace
def test_operations_have_shapes_and_what_is_around_them(name: str, both: Both) -> None:
    report, events = both(name)
    expected: Counter[Any] = Counter()
    for event in events:
        if event.get("cat") == "cpu_op":
            shapes, length = event["args"].get("Input Dims"), ns(event["dur"])
            told = None if shapes is None else json.dumps(shapes)
            expected[
                event["name"],
                ns(event["ts"]),
                length,
                told,
                event["args"].get("Sequence number"),
                event["args"]["External id"],
            ] += 1
    rows = report.sql('SELECT name, "start", "end" - "start", shapes, sequence, external FROM ops')
    found: Counter[Any] = Counter()
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        found[(*row[:3], None if row[3] is None else json.dumps(json.loads(row[3])), *row[4:])] += 1
    assert found == expected
    wrong = report.sql(
        'SELECT count(*) AS n FROM nvtx_ranges c JOIN nvtx_ranges p ON c.parent = p.id WHERE c."start" < p."start" OR c."end" > p."end"'
    )
    assert wrong.column("n").to_pylist() == [0]


@pytest.mark.slow
def test_the_pass_back_knows_where_it_came_from(both: Both) -> None:
    if not (FOLDER / "tracelens_mi300_resnet_actckpt.json.gz").exists():
        pytest.skip("the trace is not here")
    report, events = both("tracelens_mi300_resnet_actckpt.json.gz")
    arrows: dict[str, dict[int, float]] = {"s": {}, "f": {}}
    for event in events:
        if event.get("cat") == "fwdbwd":
            arrows[event["ph"]][event["id"]] = event["ts"]
    pairs = {(ns(arrows["s"][one]), ns(arrows["f"][one])) for one in arrows["s"]}
    rows = report.sql('SELECT f."start", b."start" FROM ops b JOIN ops f ON b.forward = f.range')
    assert pairs <= set(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.slow
def test_collectives_of_the_mi300(both: Both) -> None:
    if not (FOLDER / "tracelens_mi300_resnet_actckpt.json.gz").exists():
        pytest.skip("the trace is not here")
    report, events = both("tracelens_mi300_resnet_actckpt.json.gz")
    told = [
        event["args"]
        for event in events
        if event.get("cat") == "kernel" and "Collective name" in event["args"]
    ]
    rows = report.sql(
        "SELECT name, elements_in, bytes_in, group_size, type FROM collectives WHERE elements_in IS NOT NULL"
    ).to_pylist()
    assert Counter((row["elements_in"], row["group_size"], row["type"]) for row in rows) == Counter(
        (args["In msg nelems"], args["Group size"], args["dtype"]) for args in told
    )
    assert {row["name"] for row in rows} == {"all_reduce", "broadcast"}
    assert all(
        row["bytes_in"] == row["elements_in"] * {"BFloat16": 2, "Float": 4, "Long": 8}[row["type"]]
        for row in rows
    )
