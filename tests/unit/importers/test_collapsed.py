"""Collapsed stacks become samples: of Python 3.15's profiler, of py-spy, of perf, and of our own export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import warplens
from tests.support.reports import cpu_story
from warplens.errors import ReportError
from warplens.importers.importing import format_of, import_file

PYTHON_3_15 = """\
tid:100;train.py:main:10;train.py:step:20 80
tid:100;train.py:main:10;train.py:load:30;<frozen importlib._bootstrap>:_find:7 20
tid:101;threading.py:Thread.run:1;train.py:work:40 50
"""


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    report = path.with_suffix(".warplens")
    if not report.exists():
        import_file(path, report)
    with warplens.open(report) as opened:
        found: list[dict[str, Any]] = opened.table(table).to_pylist()
    return found


def stacks(path: Path) -> dict[tuple[str, ...], int]:
    """Counts by stack, each frame as `function|file|line|kind`."""
    frames = {row["frame"]: row for row in rows(path, "frames")}
    found: dict[tuple[str, ...], int] = {}
    for sample in rows(path, "samples"):
        names, frame = [], sample["stack"]
        while frame is not None:
            row = frames[frame]
            names.append(
                f"{row['function']}|{row['file'] or row['module'] or ''}|{row['line'] or ''}|{row['kind']}"
            )
            frame = row["parent"]
        key = tuple(reversed(names))
        found[key] = found.get(key, 0) + sample["count"]
    return found


def write(folder: Path, text: str, name: str = "run.collapsed") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.slow
def test_stacks_of_pythons_own_profiler(tmp_path: Path) -> None:
    path = write(tmp_path, PYTHON_3_15)
    assert stacks(path) == {
        ("main|train.py|10|python", "step|train.py|20|python"): 80,
        (
            "main|train.py|10|python",
            "load|train.py|30|python",
            "_find|<frozen importlib._bootstrap>|7|python",
        ): 20,
        ("Thread.run|threading.py|1|python", "work|train.py|40|python"): 50,
    }
    assert [row["tid"] for row in rows(path, "threads")] == [100, 101]
    samples = rows(path, "samples")
    assert sum(row["weight"] for row in samples) == 150_000_000
    by_thread: dict[int, int] = {}
    for row in sorted(samples, key=lambda row: int(row["start"])):  # one after the other, no gap
        assert row["start"] == by_thread.get(row["thread"], 0)
        by_thread[row["thread"]] = row["end"] + 1_000_000
    (notice,) = [row for row in rows(path, "diagnostics") if row["code"] == "no-times"]
    assert "1000 us each" in notice["message"]


@pytest.mark.slow
def test_stacks_of_py_spy_and_perf(tmp_path: Path) -> None:
    text = (
        "main (train.py:10);load (train.py:30);memcpy (libc.so.6) 3\nswapper;do_idle_[k];native_halt_[k] 2\n"
    )
    assert stacks(write(tmp_path, text)) == {
        ("main|train.py|10|python", "load|train.py|30|python", "memcpy|libc.so.6||native"): 3,
        ("swapper|||native", "do_idle|[kernel]||kernel", "native_halt|[kernel]||kernel"): 2,
    }
    assert {row["kind"] for row in rows(tmp_path / "run.collapsed", "samples")} == {"python", "native"}


@pytest.mark.slow
def test_exported_stacks_come_back(tmp_path: Path) -> None:
    from warplens.exporters.formats.collapsed import write as export

    cpu_story.write(tmp_path / "story.warplens")
    with warplens.open(tmp_path / "story.warplens") as report:
        export(report, tmp_path / "back.collapsed.txt")
    counts = stacks(tmp_path / "back.collapsed.txt")
    assert sum(counts.values()) == 84
    assert {key[-1].partition("|")[0]: count for key, count in counts.items()}["Model.forward"] == 40


def test_other_texts_are_not_taken_for_stacks(tmp_path: Path) -> None:
    assert format_of(write(tmp_path, PYTHON_3_15)).id == "collapsed"
    for number, text in enumerate(("a;b;c\n1;2;3\n", "one 1\ntwo 2\n", "a;b 1\nthis is prose\n", "")):
        with pytest.raises(ReportError):
            format_of(write(tmp_path, text, f"{number}.collapsed"))
    (tmp_path / "binary.collapsed").write_bytes(b"a;b 1\n\xff\xfe\x00" * 9)
    with pytest.raises(ReportError):
        format_of(tmp_path / "binary.collapsed")


def test_broken_lines_are_counted_and_impossible_ones_refused(tmp_path: Path) -> None:
    late = "a;b 1\n" * 20_000 + "no stack here\n"
    found = rows(write(tmp_path, late), "diagnostics")
    assert [(row["code"], row["count"]) for row in found if row["severity"] == "warning"] == [("broken", 1)]
    with pytest.raises(ReportError, match="more than a century"):
        import_file(
            write(tmp_path, "a;b 99999999999999999999999\n", "large.collapsed"), tmp_path / "large.warplens"
        )
