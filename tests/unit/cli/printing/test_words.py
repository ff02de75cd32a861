"""Numbers as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.cli.printing.words import counted, duration, short_path, size


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 us"),
        (12_345, "12.3 us"),
        (999_499, "999 us"),
        (999_600, "1.00 ms"),
        (1_230_000, "1.23 ms"),
        (9_996_000, "10.0 ms"),
        (2_345_678_901, "2.35 s"),
        (5_000_000_000_000, "5,000 s"),
        (-1_500, "-1.50 us"),
    ],
)
def test_duration(ns: int, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1024, "1.00 KiB"), (1 << 20, "1.00 MiB"), (5 << 40, "5.00 TiB")],
)
def test_size(count: int, text: str) -> None:
    assert size(count) == text


def test_counted() -> None:
    assert (
        counted(1, "range"),
        counted(2500, "range"),
        counted(2, "process"),
        counted(0, "row"),
        counted(2, "launch"),
    ) == (
        "1 range",
        "2,500 ranges",
        "2 processes",
        "0 rows",
        "2 launches",
    )


def test_short_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    assert short_path(tmp_path / "in" / "x.warplens") == "x.warplens"
    assert short_path(tmp_path / "in" / "a b.warplens") == "'a b.warplens'"
    assert short_path(Path("/x")) == "/x"
