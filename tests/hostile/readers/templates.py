"""Whole inputs of every kind that a reader takes, small: rounds damage copies of them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.page.viewing import PICTURE
from tests.support.reports.kineto_trace import call, event, kernel, op, write
from tests.support.reports.nsys_export import Export
from tests.unit.convert.recording import recording
from tests.unit.importers import cpu_story
from tests.unit.importers.story import tell
from warplens import catalog
from warplens.flows.viewing import view_of
from warplens.handover import pending
from warplens.report import open as open_report
from warplens.testing import spool_writer as sw
from warplens.testing.timeline import timeline

CLOCKS = "".join(
    json.dumps({"counter": t, "monotonic": t, "realtime": 10**18 + t}) + "\n" for t in (1, 1000, 2000)
)
WINDOWS = [(400, 450, 1, 7, 0), (500, 2_150, 5, 5, 10), (2_150, 0, 3, 0, 11)]
REPORT, SPOOL = "report.warplens", "spool.warplens"
# In the order of the formats: JSON, JSON in gzip, SQLite, folders of Parquet, Perfetto, collapsed stacks.
IMPORTS = (
    "trace.json",
    "trace.json.gz",
    "run.sqlite",
    "run_pqtdir",
    "run.perfetto-trace",
    "stacks.collapsed",
)


def make(folder: Path) -> None:
    """Write one of each into a folder."""
    report = folder / REPORT
    timeline(report, PICTURE)
    with open_report(report) as opened:
        view = view_of([opened])
        assert view.reports[0].tree  # which writes the index
        for one in view.reports:
            one.close()
        catalog.find("exporters.formats", "perfetto").load().write(opened, folder / "run.perfetto-trace")
    _spool(folder / SPOOL)
    events = [
        op("aten::mm", 100, 50, External_id=1),
        call("cudaLaunchKernel", 110, 5, 7),
        kernel("gemm", 120, 40, 7),
    ]
    events += [
        event("user_annotation", "step#1", 90, 200),
        event("python_function", "train.py(3): run", 80, 300),
    ]
    for name in ("trace.json", "trace.json.gz"):
        write(folder / name, events, deviceProperties=[{"id": 0, "name": "GPU"}])
    exported = tell(Export())
    cpu_story.tell(exported)
    exported.write(folder / "run.sqlite")
    split(folder / "run.sqlite", folder / "run_pqtdir")
    (folder / "stacks.collapsed").write_text("main;run;work 10\nmain;run;wait 5\nmain;load 3\n")


def _spool(report: Path) -> None:
    """A recording that nobody has finished, in a report."""
    spool = recording(report / "spool" / "one", launch={}, clocks=CLOCKS)
    (spool / "control").write_bytes(sw.control(WINDOWS, keep_ns=1_000))
    pending.adopt(report, spool, "one")


def split(file: Path, folder: Path) -> None:
    """The same as a folder of Parquet files."""
    folder.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = connection.execute(f'SELECT * FROM "{name}"')
            columns = list(zip(*cursor.fetchall(), strict=True))
            if columns:
                names = [column[0] for column in cursor.description]
                pq.write_table(
                    pa.table([pa.array(list(values)) for values in columns], names),
                    folder / f"{name}.parquet",
                )
