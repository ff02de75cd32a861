"""A report that goes through Perfetto's format is the same report: every fact that the export does not say it loses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from warplens import catalog
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
    main          |[step                                              ]  !save
    main          | [load    ]          <open
    main@lib      |      [cross    ]
    main#task     |   {fetch     }
    main#task     |     [parse ]
    p1/main       |   {async     }
    p1/main       |      {async  }
    main~mem      |1   2   3
    main:api      |  (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )(cudaGraphLaunch#3)
    main:api      |    (cuLaunchKernel )
    gpu0.7        |       (gemm#1   )          (HtoD#2  )(memset )  (add#3 )(mul#3 ) !5
    gpu0.7        |          (gemm )
    gpu0.9        | (graph#3 )
    main:overhead |(Buffer_flush )
    :sync         |                               (Stream )
    :um           |(HtoD ) (CPU_page_fault )
    gpu0:memory   |+4096   -4096
    gpu0~SM_Active|0    55.5
    p1/gpu1.3     | (x )
    main:python   |(main;load;read     )(main:7;step:12 )
    main:state    |(running:1 )(blocked:poll )(runnable )
    main:os       |(poll )(read:/data/a<main;load )
    main:gil      |(hold  )(wait  )
    main:gc       |(2     )
    main:import   |(numpy )
    main:call     |(load  )!ValueError (task:work )
"""
# What the export says it loses, or what has another number in the report that it becomes.
LOST = {
    "nvtx_ranges": {"category_id"},
    "nvtx_marks": {"category_id"},
    "nvtx_counters": {"scale"},
    "kernels": {"mangled"},
    "cuda_api": {"stack"},
    "syncs": {"api"},
    "gpu_memory": {
        "context",
        "stream",
        "address",
        "pool",
        "pool_size",
        "pool_used",
        "name",
        "api",
        "correlation",
    },
    "gpu_metrics": {"uuid"},
    "frames": {"frame", "parent", "file", "first_line"},
    "samples": {"gil", "cut", "task", "stack", "cpu", "late", "weight"},
    "osrt": {"stack"},
    "processes": {"recorded"},
    "ops": {"forward", "stack"},
    "collectives": {"kernel", "range"},
    "syscalls": {"stack"},
}
NOT_THERE = {"external_ids", "tensor_memory", "clocks", "nvtx_schemas", "payloads"}


def through_perfetto(tmp_path: Path, report: Report, **options: Any) -> Report:
    out = tmp_path / "r.perfetto-trace"
    catalog.find("exporters.formats", "perfetto").load().write(report, out, **options)
    import_file(out, tmp_path / "again.warplens")
    return open_report(tmp_path / "again.warplens")


def compare(before: Report, after: Report, *, without: frozenset[str] = frozenset()) -> None:
    for table in before.tables:
        if table in NOT_THERE or table in without:
            continue
        rows, again = (
            [_kept(table, row) for row in report.table(table).to_pylist()] for report in (before, after)
        )
        assert again == rows, table


def _kept(table: str, row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in LOST.get(table, ())}


def test_a_drawn_timeline_comes_back(tmp_path: Path) -> None:
    extra: dict[str, Any] = {
        "load": {"color": 0xFF12ABEF, "payload_int": -7, "category": "io"},
        "step": {"payload_float": 1.5},
        "save": {"payload_int": 3, "category": "disk"},
    }
    cuda: dict[str, Any] = {
        "gemm": {"grid_x": 8, "demangled": "void gemm<float>(int)"},
        "#2": {"bytes": 18_000},
        "gpu0": {"name": "H100"},
    }
    timeline(
        tmp_path / "r.warplens",
        PICTURE,
        extra=extra,
        cuda=cuda,
        ranks={"": 0, "p1": 1},
        command=("python", "a b.py"),
    )
    before = open_report(tmp_path / "r.warplens")
    after = through_perfetto(tmp_path, before)
    compare(before, after)
    assert after.span == before.span
    assert after.manifests[0].command == ["python", "a b.py"]
    assert after.diagnostics.num_rows == 0
    linked = "SELECT k.name, a.name FROM kernels k JOIN cuda_api a ON k.api = a.id ORDER BY k.start"
    assert after.sql(linked).to_pylist() == before.sql(linked).to_pylist()


def test_payloads_come_back(tmp_path: Path) -> None:
    given_payload = {"batch": 3, "loss": 0.25, "ok": True, "names": ["a", "ü"], "deep": {"x": [1, -2]}}
    payloads: dict[str, Any] = {"a": [given_payload, [1.5, 2.5]], "m": ["text"]}
    timeline(
        tmp_path / "r.warplens",
        "main |[a ][a ][b ] !m",
        payloads=payloads,
        end_payloads={"b": [{"bytes": 1}]},
    )
    before = open_report(tmp_path / "r.warplens")
    after = through_perfetto(tmp_path, before)
    found = [
        (row["event_type"], row["at_end"], row["json"])
        for row in sorted(after.table("payloads").to_pylist(), key=lambda r: (r["event_type"], r["event"]))
    ]
    texts = '{"batch":3,"loss":0.25,"ok":true,"names":["a","ü"],"deep":{"x":[1,-2]}}'
    assert found == [
        ("mark", False, '"text"'),
        ("range", False, texts),
        ("range", False, "[1.5,2.5]"),
        ("range", True, '{"bytes":1}'),
    ]


def test_events_of_frameworks_and_mpi_come_back(tmp_path: Path) -> None:
    when = {"process": 0, "thread": 0, "start": 1_000_001_000, "end": 1_000_003_000}
    tables: dict[str, Any] = {
        "mpi_events": [
            {
                **when,
                "id": 0,
                "name": "MPI_Send",
                "kind": "p2p",
                "peer": 3,
                "tag": 9,
                "bytes": 4096,
                "range": 0,
            }
        ],
        "openmp_events": [{**when, "id": 0, "kind": "parallel", "name": None}],
        "openacc_events": [{**when, "id": 0, "kind": "data", "name": "Enter Data"}],
        "syscalls": [{**when, "id": 0, "name": "futex", "result": -11}],
        "collectives": [
            {
                **{k: v for k, v in when.items() if k != "thread"},
                "id": 0,
                "name": "all_reduce",
                "group": "dp",
                "group_size": 8,
                "bytes_in": 64,
            }
        ],
        "ops": [
            {
                **when,
                "range": 0,
                "start": 1_000_000_000,
                "end": 1_000_009_000,
                "name": "mm",
                "sequence": 4,
                "shapes": "[[2,2]]",
            }
        ],
    }
    timeline(tmp_path / "r.warplens", "main@pytorch |[mm     ]", tables=tables)
    before = open_report(tmp_path / "r.warplens")
    assert before.tables["ops"] == 1
    compare(before, through_perfetto(tmp_path, before))


def test_stages_of_gpus_come_back_as_what_ran(tmp_path: Path) -> None:
    cuda: dict[str, Any] = {
        "gemm": {"grid_x": 8, "block_y": 4, "registers": 40, "dynamic_shared": 512},
        "#2": {"bytes": 18_000},
    }
    timeline(tmp_path / "r.warplens", PICTURE, cuda=cuda)
    before = open_report(tmp_path / "r.warplens")
    after = through_perfetto(tmp_path, before, gpu_stages=True)
    same = ("start", "end", "device", "context", "stream", "correlation")
    kernel = ("grid_x", "block_x", "block_y", "registers", "dynamic_shared", "name")
    for table, columns in (
        ("kernels", (*same, *kernel)),
        ("memcpys", (*same, "kind", "bytes")),
        ("memsets", (*same, "bytes")),
    ):
        sides = [
            sorted(
                map(repr, ({name: row[name] for name in columns} for row in report.table(table).to_pylist()))
            )
            for report in (before, after)
        ]
        assert sides[1] == sides[0], table
    linked = "SELECT k.name, a.name FROM kernels k JOIN cuda_api a ON k.api = a.id ORDER BY k.start"
    assert after.sql(linked).to_pylist() == before.sql(linked).to_pylist()


def test_memory_of_tensors_becomes_a_counter(tmp_path: Path) -> None:
    row = {
        "id": 0,
        "process": 0,
        "thread": 0,
        "start": 1_000_001_000,
        "device": 0,
        "device_type": "CUDA",
        "address": 1,
        "bytes": 64,
    }
    rows = [{**row, "allocated": 64}, {**row, "id": 1, "start": 1_000_002_000, "bytes": -64, "allocated": 0}]
    timeline(tmp_path / "r.warplens", "main |[a   ]", tables={"tensor_memory": rows})
    after = through_perfetto(tmp_path, open_report(tmp_path / "r.warplens"))
    assert [row["name"] for row in after.table("nvtx_counters").to_pylist()] == ["Tensors on GPU 0"]
    assert [row["value_int"] for row in after.table("nvtx_counter_samples").to_pylist()] == [64, 0]


PIECES = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["", "@a", "@b", "#t"]),
    st.integers(0, 40),
    st.integers(2, 25),
    st.booleans(),
)
WORK = st.tuples(
    st.sampled_from(["gpu0.7", "gpu0.8", "gpu1.7"]),
    st.integers(0, 40),
    st.integers(3, 20),
    st.sampled_from(["k", "HtoD", "memset"]),
)


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pieces=st.lists(PIECES, min_size=1, max_size=20), work=st.lists(WORK, max_size=12))
def test_any_arrangement_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    pieces: list[tuple[int, str, int, int, bool]],
    work: list[tuple[str, int, int, str]],
) -> None:
    lines = [
        f"p{thread % 2}/t{thread}{where} |{' ' * start}{'{' if cross else '['}r{number}{' ' * max(length - 4, 0)}{'}' if cross else ']'}"
        for number, (thread, where, start, length, cross) in enumerate(pieces)
    ]
    lines += [
        f"{stream} |{' ' * start}({name if name != 'k' else f'k{number}'}{' ' * length})"
        for number, (stream, start, length, name) in enumerate(work)
    ]
    tmp_path = tmp_path_factory.mktemp("any")
    timeline(tmp_path / "r.warplens", "\n".join(lines))
    before = open_report(tmp_path / "r.warplens")
    after = through_perfetto(tmp_path, before)
    for table in ("nvtx_ranges", "kernels", "memcpys", "memsets"):
        leave = {"id", "parent", *LOST.get(table, ())}  # of events with equal times the order is not kept
        sides = []
        for report in (before, after):
            names = {row["id"]: (row.get("message"), row["start"]) for row in report.table(table).to_pylist()}
            rows = [
                {**{k: v for k, v in row.items() if k not in leave}, "above": names.get(row.get("parent"))}
                for row in report.table(table).to_pylist()
            ]
            sides.append(sorted(map(repr, rows)))
        assert sides[1] == sides[0], table
