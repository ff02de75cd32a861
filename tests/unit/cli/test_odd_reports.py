"""What shows a report never fails in Python: not for a broken report, and not for what a program may well have said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.thorough import THOROUGH, few
from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import MissingData, WarplensError
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


START = 1_000_000_000
COMMANDS = (
    ("timeline",),
    ("timeline", "--color", "always", "--ascii", "--width", "40"),
    ("info",),
    *(("export", "-f", "-t", unit.id) for unit in catalog.units("exporters.formats")),
    *(("stats", "-r", unit.id) for unit in catalog.units("stats.tables")),
)
SAMPLE = {"id": 0, "process": 0, "thread": 0, "counter": 1, "start": START, "value_int": 3}
COUNTER = {"counter": 1, "process": 99, "id": 1, "name": "c", "type": "int64"}
PAYLOAD = {"process": 0, "event_type": "range", "type": "x", "at_end": False}
BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "a task of no thread": (
        "main |[a ]",
        {
            "extra": {"a": {"task": 5}},
            "tables": {
                "tasks": [{"task": 5, "process": 0, "thread": 77, "library": "asyncio", "start": START}]
            },
        },
    ),
    "a range of no task": ("main |[a ] !m", {"extra": {"a": {"task": 5}, "m": {"task": 5}}}),
    "a counter of no process": (
        "main |[a ]",
        {"tables": {"nvtx_counters": [COUNTER], "nvtx_counter_samples": [SAMPLE | {"process": 99}]}},
    ),
    "a sample of no counter": ("main |[a ]", {"tables": {"nvtx_counter_samples": [SAMPLE]}}),
    "a payload of nothing": (
        "main |[a ]",
        {
            "tables": {
                "payloads": [
                    PAYLOAD | {"event": 9, "cut": False, "json": "1"},
                    PAYLOAD | {"event": 0, "cut": True, "data": b"abc", "schema": 12},
                ]
            }
        },
    ),
    "a payload that is no JSON": (
        "main |[a ]",
        {
            "tables": {
                "payloads": [
                    PAYLOAD | {"event": 0, "cut": True, "json": "[" * 100_000},
                    PAYLOAD | {"event": 0, "cut": False, "json": "NaN"},
                ]
            }
        },
    ),
}
ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "counters alone": ("main~c |1 2 3", {}),
    "the largest values": (
        "main~c |9223372036854775807 -9223372036854775808 1",
        {"counters": {"c": {"interpolation": "linear"}}},
    ),
    "large changes": (
        "main~c |9223372036854775807 9223372036854775807",
        {"counters": {"c": {"value_type": "delta"}}},
    ),
    "a huge scale": ("main~c |9223372036854775807 1 1", {"counters": {"c": {"scale": 1e300}}}),
    "no scale": ("main~c |3 1 1", {"counters": {"c": {"scale": 0.0}}}),
    "limits without room": ("main~c |5 5", {"counters": {"c": {"minimum": 5.0, "maximum": 5.0}}}),
    "hostile names": (
        "main#t |[a ]\nmain~c |1 2",
        {
            "tasks": {"t": {"name": "e\x1b[31m\nvil" * 20}},
            "counters": {"c": {"name": "\x1b[2Jx\n", "unit": "\x1b[31m\n", "description": "\0"}},
        },
    ),
    "nameless": (
        "main#t |[a ]\nmain~c |1 2",
        {"tasks": {"t": {"name": None}}, "counters": {"c": {"name": None}}},
    ),
}


def run(report: Path, words: tuple[str, ...]) -> str:
    result = CliRunner().invoke(commands, [words[0], str(report), *words[1:]])
    if result.exception is not None and not isinstance(result.exception, (WarplensError, SystemExit)):
        raise result.exception
    assert "\x1b[2J" not in result.output
    return result.output or (str(result.exception) if isinstance(result.exception, MissingData) else "")


def some(reports: dict[str, Any], name: str) -> Iterator[tuple[str, ...]]:
    """The commands for one of these reports: all, or each for one report of three."""
    number = list(reports).index(name)
    return (words for at, words in enumerate(COMMANDS) if THOROUGH or (at + number) % 3 == 0)


@pytest.mark.parametrize("name", few(BROKEN, 2))
def test_a_broken_report_is_an_error_of_ours_at_most(name: str, tmp_path: Path) -> None:
    picture, options = BROKEN[name]
    timeline(tmp_path / "r.warplens", picture, **options)
    for words in some(BROKEN, name):
        run(tmp_path / "r.warplens", words)


@pytest.mark.parametrize("name", few(ODD, 2))
def test_odd_reports_are_shown_by_every_command(name: str, tmp_path: Path) -> None:
    picture, options = ODD[name]
    timeline(tmp_path / "r.warplens", picture, **options)
    for words in some(ODD, name):
        assert run(tmp_path / "r.warplens", words), words
