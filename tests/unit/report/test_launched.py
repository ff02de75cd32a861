"""GPU work belongs to the window in which its call began, whenever it ran, and keeps its times."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.thorough import few
from warplens.model.tables import TABLES
from warplens.report import Report
from warplens.report import open as open_report
from warplens.report.row_groups import row_groups, stream
from warplens.storage.writer import Facts, PartWriter
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
    windows  |  [start    ]     [nvtx      ]
    main:api | (cudaLaunchKernel#1)
    main:api |     (cudaMemsetAsync#2)(cudaGraphLaunch#3  )
    gpu0.7   |      (a#1 )  (memset#2 ) (graph#3 )
    gpu0.8   |            (b     )(HtoD#9 )      !4#2 !5#3
"""
START = 1_000_000_000
OF = {"int": 0, "uint": 0, "float": 0.0, "dict": "x", "string": "x", "bool": False}
Row = dict[str, Any]


def spans(report: Report, table: str) -> list[tuple[int, int]]:
    rows = report.table(table, ["start", "end"]).to_pylist()
    return [((row["start"] - START) // 1000, (row["end"] - START) // 1000) for row in rows]


def test_a_window_has_the_work_launched_in_it(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", PICTURE)
    with open_report(tmp_path / "r.warplens") as report, report.window(1) as one, report.window(2) as two:
        # a's call began before the windows; b has none, and the copy's was not recorded: they count by their own time.
        assert spans(one, "kernels") == [(12, 20)]
        assert spans(one, "memsets") == [(14, 25)]
        assert spans(two, "kernels") == [(12, 20)]
        assert spans(two, "memcpys") == [(20, 29)]
        assert spans(one, "graphs") == spans(two, "memsets") == []
        assert spans(two, "graphs") == [(26, 36)]
        assert one.span == (report.origin + 2_000, report.origin + 25_000)
        assert two.span == (report.origin + 18_000, report.origin + 36_000)
        assert [each.table("cuda_events", ["event"]).column(0).to_pylist() for each in (one, two)] == [
            [4],
            [5],
        ]
        assert (one.tables["memsets"], two.tables["memsets"]) == (1, 0)
        assert one.sql('SELECT "start", "end" FROM memsets').to_pylist() == [
            {"start": START + 14_000, "end": START + 25_000}
        ]
        assert one.sql("SELECT * FROM memsets JOIN cuda_api ON memsets.api = cuda_api.id").num_rows == 1
        with one.window(1) as same:
            assert spans(same, "kernels") == spans(one, "kernels")


def filled(table: str, **values: Any) -> Row:
    """A row of a table: what is not given is 0, or null."""
    return {
        c.name: values.get(c.name, None if c.nullable else OF[c.type.rstrip("0123456789")])
        for c in TABLES[table].columns
    }


def random_part(
    report: Path, chance: random.Random, name: str, windows: list[tuple[int, int]], offset: int
) -> tuple[dict[int, Row], list[Row]]:
    """Write calls and kernels of 3 processes in several row groups; return both, times shifted."""
    calls: dict[int, Row] = {}
    kernels: list[Row] = []
    with PartWriter(report, name, "host") as part:
        for process in range(part.first_process, part.first_process + 3):
            about = {
                "pid": process,
                "parent_pid": 1,
                "host": "h",
                "executable": "x",
                "command": "x",
                "primary": False,
                "exited": True,
            }
            part.write("processes", [{"process": process, **about, "start": 0, "end": 2000}])
            starts = sorted(chance.randrange(1000) for _ in range(chance.choice((0, 60))))
            own = [
                filled("cuda_api", id=(process << 32) + n, process=process, start=s, end=s + 5)
                for n, s in enumerate(starts)
            ]
            begins = sorted(chance.randrange(1400) for _ in range(60))
            work = [
                filled(
                    "kernels",
                    id=(process << 32) + number,
                    process=process,
                    start=start,
                    end=start + chance.randrange(300),
                    api=chance.choice([*(row["id"] for row in own), *[None] * 10]),
                )
                for number, start in enumerate(begins)
            ]
            for first in range(0, 60, 17):
                if own[first:]:
                    part.write("cuda_api", own[first : first + 17])
                part.write("kernels", work[first : first + 17])
            calls |= {row["id"]: row for row in own}
            kernels += work
        causes = {"host": "host", "opened_by": "nvtx", "closed_by": "nvtx"}
        part.write(
            "capture_windows",
            [
                {"part": part.part, "number": n, "start": b, "end": e, **causes}
                for n, (b, e) in enumerate(windows, 1)
            ],
        )
        part.commit(Facts(name, "host", "other" if offset else "boot", realtime_offset=offset, end=2_000))
    for row in (*calls.values(), *kernels):
        row.update(start=row["start"] + offset, end=row["end"] + offset)
    return calls, kernels


@pytest.mark.parametrize("seed", few(range(6), 2))
def test_every_way_agrees_with_an_oracle(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    edges = [sorted(chance.sample(range(1100), 4)) for _ in range(2)]
    windows = [[(a, b), (c, d)] for a, b, c, d in edges]
    if seed % 2:
        del windows[1][1]
    path = tmp_path / "r.warplens"
    offsets = (0, 5_000)
    parts = [
        random_part(path, chance, str(offset), own, offset)
        for own, offset in zip(windows, offsets, strict=True)
    ]
    columns = ["id", "start", "end"]
    with open_report(path) as report:
        for number in (1, 2):
            expected = []
            for (calls, kernels), own, offset in zip(parts, windows, offsets, strict=True):
                begin, end = (edge + offset for edge in own[number - 1]) if number <= len(own) else (-2, -1)
                for row in kernels:
                    start, behind = row["start"], row["end"]
                    known = row["api"] is not None
                    chosen = (
                        begin <= calls[row["api"]]["start"] < end
                        if known
                        else start < end and (behind > begin or start >= begin)
                    )
                    expected += [tuple(row[column] for column in columns)] if chosen else []
            with report.window(number) as view:
                assert [tuple(row.values()) for row in view.table("kernels", columns).to_pylist()] == expected
                asked = view.sql('SELECT id, "start", "end" FROM kernels ORDER BY id').to_pylist()
                assert [tuple(row.values()) for row in asked] == sorted(expected)
                read = (
                    pa.concat_tables(stream(view, "kernels", ["end", "id"])).to_pylist()
                    if row_groups(view, "kernels")
                    else []
                )
                assert [(row["id"], row["end"]) for row in read] == [(row[0], row[2]) for row in expected]
                assert view.tables["kernels"] == len(expected)
