"""Which events are on which tracks, under which names."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warplens.model.tables import TABLES
from warplens.report.store import open_store
from warplens.storage import schema
from warplens.storage.writer import Facts, write_part
from warplens.testing.timeline import timeline
from warplens.timeline.index import LAYERS, LaneIndex

FAR = 1 << 61
Place = tuple[str, tuple[tuple[str, int | str], ...]]  # layer, key


def slices(report: Path) -> dict[Place, list[tuple[int, int, int, str]]]:
    """Return lane, start, duration and name of everything on each track."""
    store = open_store(report)
    found: dict[Place, list[tuple[int, int, int, str]]] = defaultdict(list)
    with LaneIndex.open(store, store.parts[0], None) as index:
        for hit in index.find(range(len(index.names)), -FAR, FAR, 10**6):
            track = index.tracks[hit.track]
            found[track.layer, tuple(sorted(track.key.items()))].append(
                (hit.lane, hit.start, hit.duration, index.names.text(hit.name))
            )
    return found


def names(report: Path, layer: str) -> list[str]:
    return sorted(name for (one, _), rows in slices(report).items() if one == layer for *_, name in rows)


def test_the_columns_of_a_layer_are_in_its_table() -> None:
    for layer in LAYERS:
        columns = {column.name: column for column in TABLES[layer.table].columns}
        wanted = {*layer.keys, *layer.names, layer.color, layer.depth, layer.link} - {""}
        computed = {"inside", "sm", "warp"} if layer.inside else {"kind"} if layer.style else set()
        assert wanted - columns.keys() <= computed, layer.name
        assert layer.keys[0] == "process"
        assert columns["start"].clock
    assert len({layer.name for layer in LAYERS}) == len(LAYERS)


def test_ranges_of_threads_tasks_and_none(tmp_path: Path) -> None:
    timeline(
        tmp_path / "r.warplens",
        """
        main    |[step         ]{async }
        main    |  [load ]   {copy       }
        main#t1 | [fetch     ]
        main#t1 |   [get  ]
        main#t2 |     [fetch     ]
        w       |[step   ]!save
        """,
        tick_ns=1,
        origin=0,
    )
    found = slices(tmp_path / "r.warplens")
    threads = [
        rows
        for (layer, key), rows in found.items()
        if layer == "nvtx_ranges" and dict(key)["kind"] == "push_pop"
    ]
    assert [[(lane, name) for lane, *_, name in rows] for rows in threads] == [
        [(0, "step"), (1, "load")],
        [(0, "step")],
    ]
    (tasks,) = (rows for (_, key), rows in found.items() if dict(key).get("kind") == "tasks")
    assert [(lane, name) for lane, *_, name in tasks] == [(0, "fetch"), (1, "get"), (2, "fetch")]
    (crossing,) = (rows for (_, key), rows in found.items() if dict(key).get("kind") == "start_end")
    assert [(lane, name) for lane, *_, name in crossing] == [(0, "copy"), (1, "async")]
    (marks,) = (rows for (layer, _), rows in found.items() if layer == "nvtx_marks")
    assert [(lane, duration, name) for lane, _, duration, name in marks] == [(0, 0, "save")]


def test_gpu_work_is_by_stream_and_copies_by_direction_too(tmp_path: Path) -> None:
    timeline(
        tmp_path / "r.warplens",
        """
        main:api |(cudaLaunchKernel#1)(cudaMemcpyAsync#2)
        gpu0.7   |   (gemm#1   )(HtoD#2 )(memset )(graph#9 )
        gpu1.9   |   (gemm     )  (gemm  )
        :sync    |                    (Context )
        """,
    )
    found = slices(tmp_path / "r.warplens")
    places = {
        (layer, dict(key).get("device"), dict(key).get("stream")): rows
        for (layer, key), rows in found.items()
    }
    assert [name for *_, name in places["kernels", 0, 7]] == ["gemm"]
    assert len(places["kernels", 1, 9]) == 2
    assert next(name for *_, name in places["memcpys", 0, 7]).startswith("Memcpy HtoD")
    assert next(name for *_, name in places["memsets", 0, 7]).startswith("Memset")
    (direction,) = (dict(key) for layer, key in found if layer == "memory_rows")
    assert direction == {"process": 0, "device": 0, "kind": "Host-to-Device"}
    assert names(tmp_path / "r.warplens", "syncs") == ["Context synchronization"]
    store = open_store(tmp_path / "r.warplens")
    with LaneIndex.open(store, store.parts[0], None) as index:
        links = defaultdict(set)
        for hit in index.find(range(len(index.names)), -FAR, FAR, 99):
            links[hit.link].add(index.tracks[hit.track].layer)
    assert {"cuda_api", "kernels"} in links.values()
    assert {"cuda_api", "memcpys", "memory_rows"} in links.values()


def test_the_cpu_side(tmp_path: Path) -> None:
    timeline(
        tmp_path / "r.warplens",
        """
        main:python |(main;load;read     )(main:7;step:12 )
        main:native |(main;run@libx.so;copy@kernel )
        main:task   |(A:running<*A;load )(A<*A;get )
        main:state  |(running:1 )(blocked:poll )(runnable )
        main:os     |(poll )(read:/data/a<main;load )
        main:gil    |(hold  )(wait  )
        main:gc     |(2     )
        main:import |(numpy )
        main:call   |(load    )!ValueError
        main:call   | (read )
        """,
    )
    report = tmp_path / "r.warplens"
    assert names(report, "samples") == ["copy", "read", "step"]
    assert names(report, "task_samples") == ["A: (get)", "A: load"]
    assert names(report, "thread_states") == ["blocked: poll", "runnable", "running"]
    assert names(report, "osrt") == ["poll", "read"]
    assert names(report, "gil") == ["GIL hold", "GIL wait"]
    assert names(report, "gc") == ["gc generation 2"]
    assert names(report, "imports") == ["import numpy"]
    calls = {tuple(key): rows for (layer, key), rows in slices(report).items() if layer == "python_calls"}
    assert sorted((lane, name) for rows in calls.values() for lane, *_, name in rows) == [
        (0, "ValueError"),
        (0, "load"),
        (1, "read"),
    ]
    assert len({dict(key)["kind"] for layer, key in slices(report) if layer == "samples"}) == 2


def test_colors_make_names_of_their_own(tmp_path: Path) -> None:
    row = {
        "process": 0,
        "thread": 0,
        "style": "PushPop",
        "depth": 0,
        "unfinished": False,
        "inherited": False,
        "clipped": False,
    }
    colors = (None, 0xFF00FF00, 0x00FF00, 0xFFFF0000)
    ranges = [
        {**row, "id": n, "start": n, "end": n + 1, "message": "x", "color": color}
        for n, color in enumerate(colors)
    ]
    write_part(tmp_path / "r.warplens", Facts("a-1-1", "a", "b", end=9), {"nvtx_ranges": ranges})
    store = open_store(tmp_path / "r.warplens")
    with LaneIndex.open(store, store.parts[0], None) as index:
        found = {
            (index.names.text(n), index.names.color(n)): index.names.count(n) for n in index.names.search("x")
        }
    assert found == {("x", None): 1, ("x", 0x00FF00): 2, ("x", 0xFF0000): 1}


def test_columns_that_an_older_file_lacks_and_rows_without_ids(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |!a !b\nmain:call |(load )")
    for table, missing in (
        ("nvtx_marks", ["id", "color", "message", "task"]),
        ("python_calls", ["color", "file", "line", "parent"]),
    ):
        (file,) = (tmp_path / "r.warplens" / "tables" / table).iterdir()
        pq.write_table(pq.read_table(file).drop_columns(missing), file)
    found = slices(tmp_path / "r.warplens")
    (marks,) = (rows for (layer, _), rows in found.items() if layer == "nvtx_marks")
    assert [name for *_, name in marks] == ["", ""]
    assert names(tmp_path / "r.warplens", "python_calls") == ["load"]


def test_every_layer_takes_a_table_with_all_its_columns(tmp_path: Path) -> None:
    """One row of each table, each column with something in it, and one with nothing where that may be."""
    tables = {}
    for layer in LAYERS:
        wanted = schema.schema(layer.table)
        full = {field.name: _some(field.type) for field in wanted}
        bare = {field.name: None if field.nullable else _some(field.type) for field in wanted}
        tables[layer.table] = [full, {**bare, "start": 7, **({"end": 9} if "end" in wanted.names else {})}]
    write_part(tmp_path / "r.warplens", Facts("a-1-1", "a", "b", end=9), tables)
    found = slices(tmp_path / "r.warplens")
    chosen = {
        layer.name for layer in LAYERS if layer.inside in ("units", "marks")
    }  # which show some rows of their tables
    found = {place: rows for place, rows in found.items() if place[0] not in chosen}
    assert {layer for layer, _ in found} == {layer.name for layer in LAYERS} - chosen
    assert sum(map(len, found.values())) == 2 * (len(LAYERS) - len(chosen))


def _some(kind: pa.DataType) -> object:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_boolean(plain):
        return True
    return "text" if pa.types.is_string(plain) else b"b" if pa.types.is_binary(plain) else 1
