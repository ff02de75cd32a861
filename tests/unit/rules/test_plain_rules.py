"""The rules about programs that nobody annotated, on drawn timelines; programs that were recorded: tests/integration/cpu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.rules.asking import ORIGIN, ask, drawn, not_judged, one
from warplens.report import Selection

MS = 1_000_000
WORK = "main |[work                                                      ]"
OWN = {"hot": {"file": "/app/train.py"}, "main": {"file": "/app/train.py"}, "a": {"file": "/app/train.py"}}


def ms(path: Path, picture: str, **how: Any) -> Any:
    """Return the picture as a report; a column is 1 ms."""
    return drawn(path, picture, tick_ns=MS, **how)


@pytest.mark.parametrize(
    ("rule", "lacks"),
    [
        ("hot_function", "does not contain samples of Python."),
        ("waits_for_cpu", "does not contain thread states."),
        ("spinning", "does not contain native samples."),
        ("sleeping", "does not contain samples of Python."),
        ("event_loop_blocked", "does not contain samples of Python."),
        ("memory_growth", "does not contain memory of processes over time."),
    ],
)
def test_without_their_data_they_do_not_judge(tmp_path: Path, rule: str, lacks: str) -> None:
    assert not_judged(drawn(tmp_path, WORK), rule) == lacks


HOT = "main:python |(main;hot:7                              )(main;a:9           )"


def test_the_hot_function_is_the_one_with_most_samples(tmp_path: Path) -> None:
    finding, other = ask(ms(tmp_path, HOT, cpu=OWN), "hot_function")
    assert (finding.subject, other.subject) == ("hot (train.py)", "a (train.py)")
    assert (finding.severity, finding.estimate) == ("high", None)
    assert finding.bound is not None
    assert 38 * MS <= finding.bound <= 42 * MS
    assert "train.py:7" in finding.cause


def test_a_part_of_the_time_has_a_hot_function_of_its_own(tmp_path: Path) -> None:
    report = ms(tmp_path, HOT, cpu=OWN)
    (finding,) = ask(report, "hot_function", Selection(time=(44 * MS, 60 * MS)), least=50)
    assert finding.subject == "a (train.py)"


def test_collections_are_not_the_function_that_they_were_in(tmp_path: Path) -> None:
    walks = "main:gc     |  (2                                  )\n"
    assert [found.subject for found in ask(ms(tmp_path, walks + HOT, cpu=OWN), "hot_function")] == [
        "a (train.py)"
    ]


def test_syncs_on_the_main_thread_are_named(tmp_path: Path) -> None:
    picture = """
    main    |[work                                                      ]
    main:os |  (fsync:/data/a<main;hot )    (fsync:/data/a<main;hot )
    io:os   |  (nanosleep<idle                                      )
    """
    finding = one(ms(tmp_path, picture, cpu={"hot": {"file": "/app/db.py", "module": None}}), "sleeping")
    assert (finding.subject, finding.occurrences, finding.confidence) == (
        "hot (db.py) waits for a disk",
        2,
        "high",
    )
    assert finding.bound == 50 * MS
    assert {row.table for row in finding.evidence} == {"osrt"}


STARVED = "main:state |(running:1 )(runnable              )(running:0                              )"


def test_the_time_without_a_cpu_is_the_bound(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, STARVED), "waits_for_cpu")
    assert (finding.bound, finding.occurrences) == (24 * MS, 1)
    assert not ask(ms(tmp_path / "b", STARVED), "waits_for_cpu", least=60)


def test_the_last_state_of_a_thread_is_not_a_wait(tmp_path: Path) -> None:
    assert not ask(ms(tmp_path, "main:state |(running:1          )(runnable              )"), "waits_for_cpu")


MEMORY = [15, 40, 80, 120, 160, 200, 240, 280, 60]


def readings(values: list[int]) -> dict[str, list[dict[str, Any]]]:
    rows = [
        {
            "host": "host",
            "process": 0,
            "start": ORIGIN + 6 * MS * number,
            "metric": "RSS",
            "unit": "bytes",
            "value": float(value << 20),
        }
        for number, value in enumerate(values)
    ]
    return {"host_metrics": rows}


def test_memory_that_only_grows_is_named_and_what_comes_back_is_not(tmp_path: Path) -> None:
    finding = one(ms(tmp_path, WORK, tables=readings(MEMORY)), "memory_growth")
    assert "grew by 225 MiB" in finding.title
    assert finding.bound is None
    assert finding.severity == "high"  # of a machine with 1 GiB
    assert "memray run" in finding.fix
    for number, values in enumerate(
        ([15, 280, 281, 280, 281, 280, 281], [15, 100, 20, 120, 21, 140, 22], [15, 20, 25, 26, 27, 28])
    ):
        assert not ask(ms(tmp_path / str(number), WORK, tables=readings(values)), "memory_growth")
