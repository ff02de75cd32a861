"""Where the time went, from drawn samples: what waits, what other threads and processes did meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import drawn
from warplens.analysis.cpu.whereabouts import whereabouts
from warplens.cli.printing import where
from warplens.report import Report

MS = 1_000_000
LIB = "/venv/lib/python3.11/site-packages"
FILES = {
    **dict.fromkeys(("main", "handle", "beat"), "/app/serve.py"),
    "poll": f"{LIB}/joblib/parallel.py",
    "select": "/usr/lib/python3.11/selectors.py",
    "commit": f"{LIB}/sqlalchemy/session.py",
    "fit": f"{LIB}/sklearn/svm.py",
}
SERVER = """
main:python |(main;select                                      )
main:state  |(running )(blocked                                )
a:python    |          (handle:9;commit            )
a:state     |          (running )(blocked          )
b:python    |          (handle:9;commit            )(fit       )
b:state     |          (running )(blocked          )(running   )
c:python    |(beat:3                                           )
c:state     |(blocked                                          )
"""
POOL = """
main:python    |(main:7;poll                                      )
main:state     |(running )(blocked                                )
p1/main:python |          (fit           )
p1/main:state  |          (running       )
p2/main:python |          (fit                 )
p2/main:state  |          (running             )
"""


def pieces(tmp_path: Path, picture: str) -> tuple[Report, list[tuple[str, str, str]]]:
    cpu = {name: {"file": file} for name, file in FILES.items()}
    report = drawn(tmp_path, picture, tick_ns=MS, cpu=cpu, main="main")
    times = whereabouts(report)
    assert times is not None
    return report, [(piece.kind, piece.text, piece.place) for piece in times.pieces]


def test_a_server_names_where_its_requests_wait(tmp_path: Path) -> None:
    _, shown = pieces(tmp_path, SERVER)
    kinds = {kind: (text, place) for kind, text, place in shown}
    assert kinds["waiting"][0] == "waits for events: sockets, timers"
    assert kinds["others"] == ("2 other threads ran", "")
    assert kinds["waited"] == ("waited (sleep, file or lock)", "handle  serve.py:9, in sqlalchemy")
    assert [text for kind, text, _ in shown if kind == "part"] == ["handle", "outside your functions"]


def test_a_thread_that_does_nothing_but_wait_is_no_wait_of_the_program(tmp_path: Path) -> None:
    _, shown = pieces(tmp_path, SERVER)
    assert not [place for _, _, place in shown if "serve.py:3" in place]


def test_a_pool_waits_for_its_processes_and_says_what_they_ran(tmp_path: Path) -> None:
    report, shown = pieces(tmp_path, POOL)
    assert ("waiting", "waits for other processes", "main  serve.py:7, in joblib") in shown
    assert shown[-2:] == [("others", "2 other processes ran", ""), ("part", "sklearn", "most in fit")]
    times = whereabouts(report)
    assert times is not None
    lines = list(where.lines(times, True, 69))
    assert lines[-2].endswith("2 other processes ran")
    assert lines[-1].endswith("          sklearn  most in fit")


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (40, "create_hero  main.py:95, in sqlalchemy"),
        (30, "create_hero  main.py:95"),
        (22, "main.py:95"),
        (5, "main…"),
    ],
)
def test_the_line_is_the_last_of_a_place_to_go(room: int, text: str) -> None:
    assert where._place("create_hero  main.py:95, in sqlalchemy", room) == text
