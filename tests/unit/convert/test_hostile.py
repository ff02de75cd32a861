"""Reports from strangers: nothing outside is touched, and what does not fit is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from warplens.cli.group import commands
from warplens.errors import ReportError, WarplensError
from warplens.handover import pending
from warplens.report import open as open_report
from warplens.report.store import open_store
from warplens.testing.timeline import timeline

PICTURE = "main |[step    ]\nmain | [load ] !m\nw@io | <open ]"
COMMANDS = (
    ("info",),
    ("stats", "-r", "nvtx_sum,nvtx_pushpop_trace", "--filter-time", "0/1s"),
    ("timeline",),
    ("query",),
    ("export", "-t", "perfetto", "-f"),
    ("export", "-t", "chrome", "-f"),
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    timeline(tmp_path / "r.warplens", PICTURE)
    return tmp_path / "r.warplens"


def edit(report: Path, **changes: Any) -> Path:
    (path,) = (report / "manifest.d").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


def rewrite(report: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the file of a table, and its number of rows in the manifest."""
    (file,) = (report / "tables" / table).glob("*.parquet")
    changed = change(pq.read_table(file))
    pq.write_table(changed, file)
    (path,) = (report / "manifest.d").glob("*.json")
    tables = json.loads(path.read_text())["tables"]
    edit(report, tables={**tables, table: {**tables[table], "rows": changed.num_rows}})


def put(
    rows: pa.Table, column: str, values: Any, *, kind: pa.DataType | None = None, nullable: bool | None = None
) -> pa.Table:
    """Replace a column: by one value for all rows, or by an array."""
    index = rows.schema.get_field_index(column)
    old = rows.schema.field(index)
    kind = kind or old.type
    array = (
        values
        if isinstance(values, (pa.Array, pa.ChunkedArray))
        else pa.array([values] * rows.num_rows).cast(kind)
    )
    field = pa.field(column, kind, nullable=old.nullable if nullable is None else nullable)
    return rows.set_column(index, field, array)


def ask_all(report: Path) -> list[str]:
    """Call every command; anything but an answer or a WarplensError raises. Returns the errors."""
    errors = []
    for command, *words in COMMANDS:
        question = ["SELECT * FROM nvtx_ranges JOIN threads USING (thread)"] if command == "query" else []
        result = CliRunner().invoke(
            commands, [command, *words, str(report), *question], env={"COLUMNS": "80"}
        )
        if isinstance(result.exception, WarplensError):
            errors.append(str(result.exception))
        elif result.exception is not None and not isinstance(result.exception, SystemExit):
            raise AssertionError((command, *words)) from result.exception
    return errors


@pytest.mark.slow
def test_an_honest_report_answers(report: Path) -> None:
    assert ask_all(report) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"version": True},
        {"part": -1},
        {"part": 1 << 15},
        {"part": True},
        {"origin": 1 << 80},
        {"end": -(1 << 80)},
        {"realtime_offset": 1.5},
        {"sources": {"nvtx": 1}},
        {"command": [1]},
        {"job": 1},
        {"clock": 1},
        {"exit_status": 1 << 40},
        {"tables": {"threads": {"file": "x\0", "rows": 0}}},
        {"tables": {"threads": {"file": "x", "rows": "many"}}},
        {"tables": {"threads": {"file": "x", "rows": -1}}},
        {"tables": {"threads": {"file": "/etc/passwd", "rows": 0}}},
    ],
)
def test_impossible_manifests(report: Path, changes: dict[str, Any]) -> None:
    path = edit(report, **changes)
    with pytest.raises(ReportError) as caught:
        open_report(report)
    assert str(path.parents[1]) in str(caught.value)


def test_a_manifest_nested_without_end(report: Path) -> None:
    (path,) = (report / "manifest.d").glob("*.json")
    path.write_text("[" * 200_000)
    with pytest.raises(ReportError, match="is broken"):
        open_report(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.drop_columns(["start"]), "lacks the column 'start'"),
        (lambda rows: rows.select(["id"]), "lacks the column"),
        (lambda rows: put(rows, "start", "x", kind=pa.string()), "'start' holds string, not int64"),
        (lambda rows: put(rows, "start", 1.5, kind=pa.float64()), "'start' holds double, not int64"),
        (lambda rows: put(rows, "start", None, nullable=True), "'start' may have gaps"),
        (lambda rows: put(rows, "message", b"\xff", kind=pa.binary()), "'message' holds binary, not string"),
    ],
)
def test_a_table_of_other_columns_is_refused_by_every_question(
    report: Path, change: Callable[[pa.Table], pa.Table], said: str
) -> None:
    rewrite(report, "nvtx_ranges", change)
    with pytest.raises(ReportError, match=said):
        open_report(report).table("nvtx_ranges")
    with pytest.raises(ReportError, match=said):
        open_report(report).sql("SELECT 1 FROM nvtx_ranges")
    errors = ask_all(report)
    assert len(errors) == len(COMMANDS) - 1  # `info` needs no range
    assert all(said in error for error in errors)


def test_a_table_of_other_rows_is_refused(report: Path) -> None:
    (path,) = (report / "manifest.d").glob("*.json")
    tables = json.loads(path.read_text())["tables"]
    edit(report, tables={**tables, "nvtx_ranges": {**tables["nvtx_ranges"], "rows": 7}})
    with pytest.raises(ReportError, match="has 3 rows, but its manifest says 7"):
        open_report(report).table("nvtx_ranges")


@pytest.mark.slow
def test_plain_strings_do_for_dictionaries(report: Path) -> None:
    rewrite(
        report,
        "nvtx_ranges",
        lambda rows: put(rows, "message", rows.column("message").cast(pa.string()), kind=pa.string()),
    )
    assert open_report(report).table("nvtx_ranges").column("message").to_pylist() == ["step", "open", "load"]
    assert ask_all(report) == []


@pytest.mark.slow
@pytest.mark.parametrize("table", ["nvtx_ranges", "threads", "processes"])
def test_tables_without_rows(report: Path, table: str) -> None:
    rewrite(report, table, lambda rows: rows.slice(0, 0))
    for error in ask_all(report):
        assert "is broken" in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("nvtx_ranges", "thread", 12345),
        ("nvtx_ranges", "process", -7),
        ("nvtx_ranges", "depth", -1),
        ("nvtx_ranges", "start", -(1 << 63)),
        ("nvtx_ranges", "end", (1 << 63) - 1),
        ("nvtx_ranges", "style", "Other"),
        ("nvtx_ranges", "message", "x" * 300_000),
        ("nvtx_marks", "thread", 12345),
        ("nvtx_marks", "start", (1 << 63) - 1),
        ("threads", "process", 99),
        ("processes", "pid", -1),
    ],
)
def test_impossible_values_are_answered_or_refused(report: Path, table: str, column: str, value: Any) -> None:
    rewrite(report, table, lambda rows: put(rows, column, value))
    ask_all(report)


@pytest.mark.slow
def test_no_recorded_text_controls_the_terminal(report: Path) -> None:
    evil = "a\x1b[2Jb\nc"
    edit(report, command=[evil], host=evil, clock=evil, sources={evil: {"on": True}}, job=evil)
    for table, columns in (
        ("processes", ("command", "host", "executable")),
        ("targets", ("host", "cpu", "os", "kernel", "machine")),
    ):
        for column in columns:
            rewrite(report, table, partial(put, column=column, values=evil))
    rewrite(report, "nvtx_ranges", lambda rows: put(rows, "message", evil))
    rewrite(report, "threads", lambda rows: put(rows, "name", evil))
    for words in (("info",), ("stats",), ("timeline",)):
        result = CliRunner().invoke(commands, [*words, str(report)], color=True)
        assert result.exit_code == 0, result.output
        assert "\x1b[2J" not in result.output, words
        assert "b\nc" not in result.output, words


@pytest.mark.parametrize("keep", [False, True])
def test_a_note_that_names_a_foreign_directory_costs_no_file_of_it(tmp_path: Path, keep: bool) -> None:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "thesis.txt").write_text("all of it")
    (home / "sub" / "x.spool").write_text("")
    report = tmp_path / "r.warplens"
    note = pending.adopt(report, home, "one")
    (home / "token").unlink()  # whoever wrote the note could not write there
    note.path.write_text(
        json.dumps({**json.loads(note.path.read_text()), "keep_raw": keep, "token": "theirs"})
    )
    with pytest.raises(ReportError, match="warplens only reads it"):
        open_report(report)
    with pytest.raises(ReportError, match="is not marked as part of this report"):
        open_store(report, trust=True)
    assert sorted(path.name for path in home.rglob("*")) == ["sub", "thesis.txt", "x.spool"]
    assert [left.id for left in pending.listed(report)] == ["one"]


def test_a_name_may_lack_its_suffix(report: Path, tmp_path: Path) -> None:
    assert open_report(tmp_path / "r").path == report
    assert open_report(str(tmp_path / "r") + "/").path == report
    (tmp_path / "r").mkdir()  # a directory of that name, but no report
    assert open_report(tmp_path / "r").path == report
