"""Dumps of PyTorch's Flight Recorder, of the form that 2.13 writes: a hang names the ranks that are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import warplens
from tests.support.reports.memory_snapshot import write
from warplens.errors import MissingData, ReportError
from warplens.importers.importing import format_of, import_file

FIRST = 1_790_000_000_000_000_000


def entry(number: int, state: str, name: str = "nccl:all_reduce") -> dict[str, Any]:
    created = FIRST + number * 1_000_000
    return {
        "record_id": number,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "op_id": number,
        "profiling_name": name,
        "time_created_ns": created,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": created + 500_000 if state == "completed" else None,
        "input_sizes": [[10, 4], [3]],
        "input_dtypes": ["BFloat16", "BFloat16"],
        "output_sizes": [[10, 4], [3]],
        "output_dtypes": ["BFloat16", "BFloat16"],
        "state": state,
        "is_p2p": False,
        "frames": [],
    }


def dumps(folder: Path, *ranks: list[dict[str, Any]]) -> Path:
    """Write the entries of each rank into a folder."""
    folder.mkdir()
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(len(ranks))))}}
    for rank, entries in enumerate(ranks):
        value = {"version": "2.10", "pg_config": config, "entries": entries}
        write(folder / f"nccl_trace_rank_{rank}", value)
    return folder


def imported(source: Path) -> warplens.Report:
    assert format_of(source).id == "flight_recorder"
    import_file(source, source.with_name("run.warplens"))
    return warplens.open(source.with_name("run.warplens"))


def test_a_hang_names_the_rank_that_is_missing(tmp_path: Path) -> None:
    done, hangs = [entry(1, "completed"), entry(2, "completed")], entry(3, "started")
    late = [*done, entry(9, "started", "nccl:_all_gather_base")]
    late[2]["collective_seq_id"] = 3
    with imported(dumps(tmp_path / "dumps", [*done, hangs], done, [*done, hangs])) as report:
        (row,) = report.stats("collective_missing").to_pylist()
        assert {name: row[name] for name in list(row)[:6]} == {
            "Group": "0 (default_pg)",
            "Sequence": 3,
            "Name": "all_reduce",
            "Waiting": "0, 2",
            "Missing": "1",
            "Last of Missing": "all_reduce 2",
        }
        first = report.table("collectives").to_pylist()[0]
        told = ("name", "group_size", "sequence", "bytes_in", "elements_out", "type", "peers")
        assert [first[name] for name in told] == ["all_reduce", 3, 1, 86, 43, "BFloat16", "[0, 1, 2]"]
        asked = 'SELECT message::VARCHAR AS message, "end" - "start" AS length, unfinished FROM nvtx_ranges ORDER BY process, "start"'
        ranges = [tuple(range_.values()) for range_ in report.sql(asked).to_pylist()]
        assert ranges[:3] == [
            ("all_reduce 1", 500_000, False),
            ("all_reduce 2", 500_000, False),
            ("all_reduce 3", 1, True),
        ]
    (tmp_path / "other").mkdir()
    with imported(dumps(tmp_path / "other" / "dumps", [*done, hangs], late)) as report:
        (row,) = report.stats("collective_missing").to_pylist()
        assert (row["Name"], row["Waiting"], row["Missing"]) == ("all_gather, all_reduce", "0-1", "")


def test_a_job_that_runs_misses_nobody_and_a_broken_dump_is_named(tmp_path: Path) -> None:
    done = [entry(1, "completed"), entry(2, "completed")]
    with (
        imported(dumps(tmp_path / "dumps", done, done)) as report,
        pytest.raises(MissingData, match="some ranks began"),
    ):
        report.stats("collective_missing")
    write(tmp_path / "rank_0", {"version": "2.10", "pg_config": {}, "entries": [{"state": 1}]})
    with pytest.raises(ReportError, match="rank_0 is broken"):
        import_file(tmp_path / "rank_0", tmp_path / "broken.warplens")
