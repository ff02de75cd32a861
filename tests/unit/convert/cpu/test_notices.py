"""What the agent notes about its own recording becomes sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.thorough import few
from tests.unit.convert.cpu.spools import report

TEXTS = {1: "CPython 3.14.2", 2: "thread states", 3: "a.b.load"}
CODES = (
    *(
        "python-found",
        "python-unknown",
        "python-denied",
        "torn-stacks",
        "sampling-slowed",
        "ticks",
        "missed-ticks",
        "perf-denied",
        "perf-lost",
    ),
    *(
        "native-sampled",
        "kernel-hidden",
        "backtrace-other",
        "states-sampled",
        "gil-unknown",
        "python-hooks",
        "function-not-found",
    ),
    *("os-calls-missing", "stacks-read-again", "python-version", "kernel-frames-hidden"),
)


@pytest.mark.slow
@pytest.mark.parametrize("number", few(range(1, len(CODES) + 1), step=3))
@pytest.mark.parametrize("name", [0, 1])
def test_every_notice_is_a_sentence(tmp_path: Path, number: int, name: int) -> None:
    found = report(
        tmp_path, {"cpu_notice": [{"notice": number, "value": 3, "name": name, "start": 500}]}, texts=TEXTS
    )
    (note,) = found.notes(CODES[number - 1])
    assert (note["source"], note["process"], note["time"]) == ("cpu", 0, 500)
    assert "process 10" in note["message"]
    assert "  " not in note["message"]
    assert "{" not in note["message"]


def test_counts_are_added_up_and_the_rest_is_told_once(tmp_path: Path) -> None:
    rows = [
        {"notice": 4, "value": 3, "start": 9},
        {"notice": 4, "value": 4, "start": 10},
        {"notice": 16, "name": 3},
        {"notice": 16, "name": 2},
    ]
    found = report(tmp_path, {"cpu_notice": [*rows, {"notice": 16, "name": 3}]}, texts=TEXTS)
    (torn,) = found.notes("torn-stacks")
    assert (torn["count"], torn["time"]) == (7, 9)
    assert torn["message"].startswith("7 Python stacks")
    missing = found.notes("function-not-found")
    assert [(row["message"].split(",")[0], row["count"]) for row in missing] == [
        ("a.b.load", 2),
        ("thread states", None),
    ]


def test_a_refused_source_names_the_setting_that_allows_it(tmp_path: Path) -> None:
    found = report(tmp_path, {"cpu_notice": [{"notice": 8, "value": 1, "name": 2}]}, texts=TEXTS)
    message = found.notes("perf-denied")[0]["message"]
    assert message.startswith("thread states is missing in process 10: perf_event_open was refused (EPERM)")
    assert "kernel.perf_event_paranoid=2" in message
    assert "--cap-add PERFMON" in message


def test_a_feature_of_newer_pythons_is_no_warning(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        {"cpu_notice": [{"notice": 19, "name": 1}]},
        texts={1: "exceptions are recorded from Python 3.12 on"},
    )
    (note,) = found.notes("python-version")
    assert note["severity"] == "info"
    assert note["message"] == "exceptions are recorded from Python 3.12 on; process 10 runs an older Python"


def test_a_notice_of_a_later_version(tmp_path: Path) -> None:
    found = report(tmp_path, {"cpu_notice": [{"notice": 99, "value": 7}]})
    assert "CPU notice 99, 7" in found.notes("cpu-notice")[0]["message"]
