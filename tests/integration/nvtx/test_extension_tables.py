"""From every call of NVTX's extensions, through the agent and finishing, to the tables of a report and typed payloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import environment, warplens
from warplens.report import Report
from warplens.report import open as open_report

pytestmark = pytest.mark.require("native")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, target: Callable[..., Path]) -> Iterator[Report]:
    """One run of the program that makes every call."""
    folder = tmp_path_factory.mktemp("tables")
    done = warplens(
        "profile",
        "-q",
        "-o",
        folder / "run.warplens",
        target("nvtx_extensions"),
        cwd=folder,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    with open_report(folder / "run.warplens") as opened:
        yield opened


def typed(report: Report, name: str, kind: str, *columns: str) -> list[dict[str, Any]]:
    """The payloads of one type that came with one kind of events of the first process."""
    rows = (
        report.payloads(name)
        .select(["process", "event_type", *(columns or report.payloads(name).column_names[3:])])
        .to_pylist()
    )
    return [
        {name: row[name] for name in columns}
        for row in rows
        if row["event_type"] == kind and row["process"] == 0
    ]


def test_structures(report: Report) -> None:
    steps = typed(report, "step", "mark", "rank", "loss", "cut")
    assert steps[:2] == [{"rank": 3, "loss": 0.5, "cut": False}] * 2
    assert {"rank": None, "loss": None, "cut": False} in steps  # three bytes of it
    both = report.sql("""SELECT r.payload_int, p.type, p.at_end
        FROM payloads p JOIN nvtx_ranges r ON p.event_type = 'range' AND p.event = r.id
        WHERE r.message = 'number' AND r.process = 0 ORDER BY at_end""")
    assert [tuple(row.values()) for row in both.to_pylist()] == [(77, "int32", False), (77, "step", True)]


def test_pointers_and_lengths(report: Report) -> None:
    first = typed(
        report, "rich", "mark", "text", "numbers", "inside", "steps", "wild", "utf16", "terminated"
    )[0]
    assert first == {
        "text": "said by the payload",
        "numbers": [10, 20, 30],
        "inside": "inside",
        "steps": [{"rank": 1, "loss": 1.5}, {"rank": 2, "loss": 2.5}],
        "wild": None,
        "utf16": "wide",
        "terminated": "edge",
    }
    (nest,) = typed(report, "nest", "mark", "before", "riches", "name")
    assert (nest["before"], nest["name"]) == (1, "registered by payload")
    assert [(rich["text"], rich["numbers"]) for rich in nest["riches"]] == [("first", None), ("second", [10])]
    whole, lying = typed(report, "dynamic", "mark", "n", "v", "text")
    assert whole == {"n": 2, "v": [1, 2], "text": "behind"}
    assert (lying["n"], lying["text"]) == (0xFFFF, None)


def test_counters(report: Report) -> None:
    about = report.sql(
        "SELECT unit, scale, minimum, maximum, value_type, interpolation, scope, type FROM nvtx_counters WHERE name = 'integer'"
    ).to_pylist()[0]
    assert tuple(about.values()) == (
        "MB",
        1 / 1024,
        0.5,
        99.5,
        "absolute",
        "point",
        "/GPU[0]/memory",
        "int64",
    )
    samples = report.sql("""SELECT name, list(coalesce(value_int, value_float) ORDER BY start, s.id) AS found, max(no_value) AS silent
        FROM nvtx_counter_samples s JOIN nvtx_counters c USING (counter) WHERE s.process = 0 GROUP BY name""").to_pylist()
    found = {row["name"]: (row["found"], row["silent"]) for row in samples}
    # The sample of its own time may lie before, between or behind those that a batch brought.
    assert sorted(found["group.rank"][0]) == [1, 2, 7]
    assert sorted(found["group.loss"][0]) == [1, 2, 7.5]
    assert found["float"] == ([2.5], None)
    assert found["small"] == ([-3], None)
    assert found["integer"][1] == "unavailable"
    assert sorted(value for value in found["integer"][0] if value is not None) == [
        -5,
        1,
        1,
        1,
        2,
        2,
        2,
        3,
        3,
        3,
    ]


def test_objects_and_operations(report: Report) -> None:
    locks = report.sql("""SELECT action, o.start <= p.start AND p.start <= o."end" AS alive
        FROM nvtx_operations p JOIN nvtx_objects o USING (object)
        WHERE o.kind = 'sync' ORDER BY p.start""").to_pylist()
    assert [row["action"] for row in locks] == [
        *(
            "sync_acquire_start",
            "sync_acquire_failed",
            "sync_acquire_start",
            "sync_acquire_success",
            "sync_releasing",
            "sync_destroy",
        )
    ]
    assert all(row["alive"] for row in locks)
    names = report.sql("SELECT DISTINCT kind, name FROM nvtx_objects WHERE name IS NOT NULL").to_pylist()
    assert {(row["kind"], row["name"]) for row in names} >= {
        ("resource", "a mutex"),
        ("resource", "registered name"),
        ("sync", "spin lock"),
        ("heap", "pool"),
        ("region", "weights"),
    }


def test_dropped_payloads_and_clocks_are_reported(report: Report) -> None:
    codes = set(report.diagnostics.column("code").to_pylist())
    assert codes >= {
        "lost-payloads",
        "cut-payloads",
        "foreign-clock",
        "undecoded-events",
        "undecoded-schema",
        "unknown-counters",
    }
