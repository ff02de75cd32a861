"""Reports whose CUDA tables name what is not there: an error that says so, from each export and from the terminal timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import ReportError
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


API = {
    "id": 0,
    "process": 0,
    "thread": 0,
    "start": 10**9,
    "end": 10**9 + 5,
    "api": "runtime",
    "name": "f",
    "result": 0,
    "correlation": 1,
}
MEMORY = {
    "id": 0,
    "process": 0,
    "device": 0,
    "start": 10**9,
    "operation": "allocate",
    "address": 0,
    "bytes": 1,
    "total": 1,
}
OVERHEAD = {"id": 0, "process": 0, "start": 10**9, "end": 10**9 + 5, "kind": "Resource"}
BROKEN: dict[str, dict[str, list[dict[str, Any]]]] = {
    "the thread 7 of a call": {"cuda_api": [{**API, "thread": 7}]},
    "the process 9 of a call": {"cuda_api": [{**API, "process": 9}]},
    "the process 9 of memory": {"gpu_memory": [{**MEMORY, "process": 9}]},
    "the thread 7 of overhead": {"overhead": [{**OVERHEAD, "thread": 7}]},
}


@pytest.mark.parametrize("kind", ["perfetto", "chrome"])
@pytest.mark.parametrize("what", BROKEN)
def test_an_export_says_what_is_broken(what: str, kind: str, tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a ]", tables=BROKEN[what])
    with pytest.raises(ReportError, match="is broken"):
        catalog.find("exporters.formats", kind).load().write(
            open_report(tmp_path / "r.warplens"), tmp_path / "out"
        )


@pytest.mark.parametrize("kind", ["perfetto", "chrome"])
def test_work_of_a_call_that_is_not_there_has_no_arrow(kind: str, tmp_path: Path) -> None:
    timeline(
        tmp_path / "r.warplens",
        "main:api |(f#1 )\ngpu0.7 |(k#1 )(k#1 )(k )",
        cuda={"k": {"api": (1 << 62) + 5}},
    )
    catalog.find("exporters.formats", kind).load().write(
        open_report(tmp_path / "r.warplens"), tmp_path / "out"
    )
    assert (tmp_path / "out").stat().st_size > 0


@pytest.mark.parametrize("what", BROKEN)
def test_the_timeline_does_not_fall_over(what: str, tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a ]\ngpu0.7 |(k )", tables=BROKEN[what])
    result = CliRunner().invoke(commands, ["timeline", str(tmp_path / "r")])
    assert result.exception is None or isinstance(result.exception, ReportError), result.exception
