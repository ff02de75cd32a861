"""The samples of the GPUs become rows, whatever stands in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warplens.convert import gpu_metrics
from warplens.convert.gpu_metrics import GpuMetrics

HEAD = {
    "gpus": [{"gpu": 0, "uuid": "GPU-a", "name": "x"}, {"gpu": 1, "uuid": None}],
    "metrics": [["Power", "W"], ["throttle reasons", ""], ["SM Active", "%"]],
}


def _rows(
    folder: Path, *lines: object, head: object = HEAD, begin: int = 0, end: int = 1 << 62
) -> tuple[list[tuple[Any, ...]], int]:
    texts = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in (head, *lines)]
    (folder / "gpu_metrics.jsonl").write_text("".join(texts))
    metrics = GpuMetrics(folder, "host")
    found = [
        row
        for columns in metrics.tables(lambda time: begin <= time < end)
        for row in zip(
            *(columns[name] for name in ("gpu", "uuid", "start", "metric", "unit", "value")), strict=True
        )
    ]
    return found, sum(note.count or 0 for note in metrics.notes())


def test_values_become_rows_and_missing_ones_none(tmp_path: Path) -> None:
    assert _rows(tmp_path, [100, 0, [300.5, 0, 12]], [101, 1, [200, None, None]]) == (
        [
            (0, "GPU-a", 100, "Power", "W", 300.5),
            (0, "GPU-a", 100, "SM Active", "%", 12.0),
            (1, None, 101, "Power", "W", 200.0),
        ],
        0,
    )


def test_a_reason_to_throttle_is_a_metric_from_when_it_was_seen(tmp_path: Path) -> None:
    rows, _ = _rows(
        tmp_path, *([time, 0, [None, bits, None]] for time, bits in ((1, 1), (2, 4), (3, 64 | 4), (4, 0)))
    )
    assert [(time, metric, value) for _, _, time, metric, _, value in rows] == [
        (2, "Throttled: Power Cap", 1.0),
        (3, "Throttled: Power Cap", 1.0),
        (3, "Throttled: Thermal, Hardware", 1.0),
        (4, "Throttled: Power Cap", 0.0),
        (4, "Throttled: Thermal, Hardware", 0.0),
    ]


def test_only_times_that_are_wanted_count(tmp_path: Path) -> None:
    rows, _ = _rows(tmp_path, *([time, 0, [time, 0, None]] for time in range(1, 9)), begin=3, end=5)
    assert [time for _, _, time, *_ in rows] == [3, 4]


@pytest.mark.parametrize(
    "line",
    [
        "{}\n",
        "nonsense\n",
        "\n",
        [0, 0, [1]],
        [-1, 0, [1]],
        [1 << 70, 0, [1]],
        [1.5, 0, [1]],
        [True, 0, [1]],
        [1, -1, [1]],
        [1, 1 << 40, [1]],
        [1, "0", [1]],
        [1, 0, 1],
        [1, 0],
        "[" * 50_000 + "\n",
    ],
)
def test_nonsense_is_left_out_and_counted(line: object, tmp_path: Path) -> None:
    assert _rows(tmp_path, line, [5, 0, [1]]) == ([(0, "GPU-a", 5, "Power", "W", 1.0)], 1)


def test_values_that_are_none_are_left_out(tmp_path: Path) -> None:
    assert _rows(
        tmp_path, [1, 0, ["x", -1, "NaN"]], "[2, 0, [NaN, 1e999, -Infinity]]\n", [3, 0, [1e301, 1 << 80, {}]]
    ) == ([], 0)


def test_a_line_that_is_being_written_is_no_damage(tmp_path: Path) -> None:
    assert _rows(tmp_path, [1, 0, [1]], "[2, 0, [1") == ([(0, "GPU-a", 1, "Power", "W", 1.0)], 0)


@pytest.mark.parametrize("head", ["nonsense\n", [], {"gpus": []}, {"metrics": 1, "gpus": []}])
def test_without_a_head_nothing_is_known(head: object, tmp_path: Path) -> None:
    assert _rows(tmp_path, [1, 0, [1]], head=head) == ([], 1)


def test_without_a_metrics_file_there_are_no_rows(tmp_path: Path) -> None:
    metrics = GpuMetrics(tmp_path, "host")
    assert (list(metrics.tables(lambda time: True)), metrics.notes()) == ([], [])


def test_many_rows_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_metrics, "ROWS_AT_ONCE", 10)
    (tmp_path / "gpu_metrics.jsonl").write_text(
        json.dumps(HEAD) + "\n" + "".join(f"[{time},0,[1,null,2]]\n" for time in range(1, 13))
    )
    assert [len(columns["start"]) for columns in GpuMetrics(tmp_path, "host").tables(lambda time: True)] == [
        10,
        10,
        4,
    ]
