"""Tables that are small on disk and large in memory are refused by what they say of themselves, before they are read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.programs.launching import COMMAND, environment
from tests.support.thorough import few
from warplens.errors import ReportError
from warplens.report import open as open_report
from warplens.storage import schema, weight
from warplens.storage.manifest import PROCESSES_PER_PART
from warplens.testing.timeline import timeline

COMMANDS = (("info",), ("timeline",), ("query", "SELECT count(*) FROM {table}"))
MIB = 1 << 20


@pytest.fixture
def report(tmp_path: Path) -> Path:
    timeline(tmp_path / "run.warplens", "main |[step    ]\nmain | [load ] !m")
    return tmp_path / "run.warplens"


def alike(table: str, rows: int, **columns: pa.Array) -> pa.Table:
    """Many rows of a table that are alike, but for some columns."""
    wanted = schema.schema(table)
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x"])
    made = []
    for item in wanted:
        if item.name in columns:
            made.append(columns[item.name])
        elif pa.types.is_integer(item.type) or pa.types.is_floating(item.type):
            made.append(pa.array(np.ones(rows, item.type.to_pandas_dtype())))
        elif pa.types.is_boolean(item.type):
            made.append(pa.array(np.ones(rows, np.bool_)))
        else:
            made.append(texts if pa.types.is_dictionary(item.type) else texts.cast(item.type))
    return pa.Table.from_arrays(made, schema=wanted)


def put(report: Path, table: str, rows: pa.Table, **options: Any) -> Path:
    """Make these the rows of a table of the report."""
    (file,) = (report / "tables" / table).glob("*.parquet")
    pq.write_table(rows, file, compression="zstd", **options)
    (path,) = (report / "manifest.d").glob("*.json")
    manifest = json.loads(path.read_text())
    manifest["tables"][table]["rows"] = rows.num_rows
    path.write_text(json.dumps(manifest))
    return file


def peak(*words: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run a command; return what it said and how many bytes of memory it had at most."""
    text = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]).returncode; "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open('peak', 'w')); sys.exit(done)"
    )
    folder = Path(words[1]).parent
    command = [sys.executable, "-c", text, *COMMAND, *words]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    return done, int((folder / "peak").read_text()) << 10


def refused(report: Path, table: str, said: str) -> None:
    """Hold every command to an error in words, in little memory."""
    with pytest.raises(ReportError, match=said):
        open_report(report).table(table)
    for command, *more in COMMANDS:
        done, most = peak(command, str(report), *(word.format(table=table) for word in more))
        assert "Traceback" not in done.stderr, done.stderr
        assert most < 600 * MIB, (command, most / MIB)
        if command == "query":
            assert done.returncode == 1
            assert said in done.stderr


def test_more_processes_than_have_keys(report: Path) -> None:
    rows = 2_000_000
    file = put(report, "processes", alike("processes", rows))
    assert file.stat().st_size < MIB
    refused(report, "processes", "has 2,000,000 processes, and the report has keys for 65,536")


def test_a_part_with_several_numbers_may_have_more_processes(report: Path) -> None:
    rows = PROCESSES_PER_PART + 5
    keys = pa.array(np.arange(rows))
    put(
        report,
        "processes",
        alike(
            "processes",
            rows,
            process=keys,
            start=pa.array(np.random.default_rng(1).integers(0, 1 << 40, rows)),
        ),
    )
    with pytest.raises(ReportError, match="has keys for 65,536"):
        open_report(report).table("processes", ["process"])
    (report / "manifest.d" / "part-1").write_text("one+1.json\n")
    assert open_report(report).table("processes", ["process"]).num_rows == rows


def test_rows_that_are_all_alike(report: Path) -> None:
    file = put(report, "threads", alike("threads", 3_000_000))
    assert file.stat().st_size < MIB
    refused(report, "threads", "no recording has that")


def test_many_row_groups_that_are_small(report: Path) -> None:
    file = put(report, "nvtx_ranges", alike("nvtx_ranges", 4_000_000), row_group_size=200_000)
    assert file.stat().st_size < MIB
    refused(report, "nvtx_ranges", "no recording has that")


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    few(
        [
            ("nvtx_ranges", "message", None),
            ("payloads", "data", "binary"),
            ("processes", "command", None),
            ("threads", "name", None),
        ],
        2,
    ),
)
def test_a_value_that_is_longer_than_any(report: Path, table: str, column: str, kind: str | None) -> None:
    value: Any = b"x" * (100 * MIB) if kind else "x" * (100 * MIB)
    wanted = schema.schema(table).field(column).type
    own = {
        column: pa.array([value]).dictionary_encode()
        if pa.types.is_dictionary(wanted)
        else pa.array([value], wanted)
    }
    file = put(report, table, alike(table, 1, **own))
    assert file.stat().st_size < MIB
    refused(report, table, f"a value of {column} that has 100 MiB, of at most 16")


@pytest.mark.parametrize("dictionary", few([True, False]))
def test_a_file_that_says_less_of_itself_than_is_in_it(report: Path, dictionary: bool) -> None:
    file = put(
        report, "threads", alike("threads", 1, name=pa.array(["x" * (100 * MIB)])), use_dictionary=dictionary
    )
    metadata = pq.read_metadata(file).row_group(0)
    (column,) = (
        metadata.column(place)
        for place in range(metadata.num_columns)
        if metadata.column(place).path_in_schema == "name"
    )
    data = file.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for told in (varint(column.total_uncompressed_size), varint(metadata.total_byte_size)):
        assert data.count(told, footer) == 1
        assert len(varint(MIB)) == len(told)
        data = data[:footer] + data[footer:].replace(told, varint(MIB))
    file.write_bytes(data)
    assert pq.read_metadata(file).num_rows == 1
    refused(report, "threads", "differs from the file that was written: name unpacks to")


def varint(value: int) -> bytes:
    """A number as the footer has it: Thrift's compact protocol."""
    found, value = [], value << 1
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def test_many_values_that_are_long(report: Path) -> None:
    texts = [f"{number}" + "x" * (5 * MIB) for number in range(40)]
    put(report, "processes", alike("processes", 40, command=pa.array(texts)))
    refused(report, "processes", "no recording has that")


def test_a_long_value_that_rows_have_in_common(report: Path) -> None:
    rows = 60_000
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * (2 * MIB)])
    differing: Mapping[str, pa.Array] = {
        "process": pa.array(np.arange(rows)),
        "start": pa.array(np.random.default_rng(1).integers(0, 9**9, rows)),
    }
    table = alike("processes", rows, **differing)
    index = table.schema.get_field_index("command")
    put(
        report,
        "processes",
        table.set_column(index, pa.field("command", text.type, nullable=False), text),
        dictionary_pagesize_limit=4 * MIB,
    )
    with pytest.raises(ReportError, match=r"unpacks to 120,000 MiB, more than half of the memory"):
        open_report(report).table("processes")
    assert open_report(report).table("processes", ["process"]).num_rows == rows


def test_texts_that_may_expand_and_do_not_are_read(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name: open_report(report).table(name) for name in ("processes", "threads", "nvtx_ranges")}
    monkeypatch.setattr(weight, "_most", lambda: 4_000)
    monkeypatch.setattr(weight, "check", lambda *_: None)
    for name in ("processes", "threads"):
        assert open_report(report).table(name) == whole[name]


def test_a_table_that_is_larger_than_the_memory(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 200_000
    put(
        report,
        "threads",
        alike("threads", rows, thread=pa.array(np.random.default_rng(1).integers(0, 1 << 60, rows))),
    )
    assert open_report(report).table("threads").num_rows == rows
    monkeypatch.setattr(weight, "_most", lambda: 4 * MIB)
    with pytest.raises(ReportError, match="unpacks to 6 MiB, more than half of the memory that there is"):
        open_report(report).table("threads")


def test_memory_that_is_not_there_is_a_message(report: Path) -> None:
    rows = 3_000_000
    put(
        report,
        "nvtx_marks",
        alike("nvtx_marks", rows, start=pa.array(np.random.default_rng(1).integers(0, 1 << 60, rows))),
    )
    text = f"""
import resource, sys
from warplens.cli.main import main
import warplens.report.report, pyarrow.compute
now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + {50 * MIB}, now + {50 * MIB}))
main(["stats", "-r", "nvtx_mark_trace", {str(report)!r}])
"""
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stderr.startswith("warplens: error: ")
    assert "memory" in done.stderr
