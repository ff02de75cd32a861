"""The samples of memory and load become rows, whatever stands in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warplens.convert.host_metrics import HostMetrics

PROCESSES = [
    {"process": 0, "pid": 7, "start": 100, "end": 1_000_000_000},
    {
        "process": 1,
        "pid": 7,
        "start": 1_000_000_000,
        "end": 2_000_000_000,
    },  # another program in the same process
]


def _rows(folder: Path, *lines: object, begin: int = 0) -> tuple[list[tuple[Any, ...]], int]:
    texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in ({"cpus": 2}, *lines)]
    (folder / "host_metrics.jsonl").write_text("".join(texts))
    metrics = HostMetrics(folder, "host", PROCESSES)
    found = [
        row
        for columns in metrics.tables(lambda time: time >= begin)
        for row in zip(
            *(columns[name] for name in ("process", "start", "metric", "unit", "value")), strict=True
        )
    ]
    return found, sum(note.count or 0 for note in metrics.notes())


def test_memory_is_of_the_process_that_had_the_id_then(tmp_path: Path) -> None:
    rows, damaged = _rows(tmp_path, [500, None, [[7, 4096]]], [1_500_000_000, 50.5, [[7, 8192], [8, 1]]])
    assert rows == [
        (0, 500, "RSS", "bytes", 4096.0),
        (None, 1_500_000_000, "CPU Load", "%", 50.5),
        (1, 1_500_000_000, "RSS", "bytes", 8192.0),
    ]
    assert not damaged


def test_only_times_that_are_wanted_count(tmp_path: Path) -> None:
    assert [row[1] for row in _rows(tmp_path, [500, 1.0, []], [600, 2.0, []], begin=600)[0]] == [600]


@pytest.mark.parametrize(
    "line",
    [
        "nonsense\n",
        "{}\n",
        "[1, 2]\n",
        '["a", 1, []]\n',
        "[1, 101, []]\n",
        "[1, -1, []]\n",
        "[1, 1, {}]\n",
        "[1, 1, [[7]]]\n",
        "[1, 1, [[7, -1]]]\n",
    ],
)
def test_damage_is_counted_and_left_out(line: str, tmp_path: Path) -> None:
    rows, damaged = _rows(tmp_path, line, [500, 1.0, []])
    assert ([row[1] for row in rows], damaged) == ([500], 1)


def test_no_file_is_no_rows(tmp_path: Path) -> None:
    assert list(HostMetrics(tmp_path, "host", PROCESSES).tables(lambda time: True)) == []
