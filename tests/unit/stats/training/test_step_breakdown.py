"""step_breakdown on drawn steps whose parts are known, and on random ones against looking at every tick."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from tests.unit.stats.drawing import line, op
from warplens import catalog
from warplens.analysis.steps.names import PARTS, part_of
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


TICK, ORIGIN = 1_000, 1_000_000_000
Row = dict[str, Any]


def drawn(path: Path, picture: str, **more: Any) -> Report:
    timeline(path / "r.warplens", picture, tick_ns=TICK, origin=ORIGIN, **more)
    return open_report(path / "r.warplens")


def stat(report: Report, selection: Selection | None = None, **options: Any) -> list[Row]:
    found: list[Row] = (
        catalog.find("stats.tables", "step_breakdown")
        .load()
        .table(report, selection or Selection(), **options)
        .to_pylist()
    )
    return found


def spent(report: Report, **options: Any) -> dict[str, float]:
    return {row["Part"]: row["Total Time (ns)"] / TICK for row in stat(report, **options)}


def test_parts_from_ranges_and_what_the_gpu_did_meanwhile(tmp_path: Path) -> None:
    picture = [
        line("main", (0, 120, "[step")),
        line(
            "main",
            (1, 15, "[load_batch"),
            (20, 40, "[forward"),
            (45, 90, "[backward"),
            (92, 105, "[zero_grad"),
        ),
        line("main", (60, 80, "[nccl:all_reduce")),
        line(
            "main:api",
            (22, 41, "(cudaLaunchKernel#1"),
            (61, 80, "(cudaLaunchKernel#2"),
            (106, 120, "(cudaMemcpy#3"),
        ),
        line("gpu0.7", (35, 70, "(gemm#1"), (75, 110, "(ncclDevKernel_AllReduce#2"), (110, 118, "(DtoH#3")),
        line("gpu0.8", (65, 78, "(relu")),
    ]
    report = drawn(tmp_path, "\n".join(picture))
    rows = {row["Part"]: row for row in stat(report, step="step")}
    gpu = {
        part: tuple(
            row[f"GPU {name} (ns)"] // TICK for name in ("Compute", "Comm", "Memory", "Idle", "Launched")
        )
        for part, row in rows.items()
    }
    assert {part: row["Total Time (ns)"] // TICK for part, row in rows.items()} == {
        "step": 120,
        "data": 14,
        "forward": 20,
        "backward": 25,
        "optimizer": 13,
        "communication": 20,
        "wait": 14,
        "other": 14,
    }
    assert gpu == {
        "step": (43, 32, 8, 37, 35 + 35 + 8),
        "data": (0, 0, 0, 14, 0),
        "forward": (5, 0, 0, 15, 35),
        "backward": (15, 10, 0, 0, 0),
        "optimizer": (0, 13, 0, 0, 0),
        "communication": (18, 2, 0, 0, 35),
        "wait": (0, 4, 8, 2, 8),
        "other": (5, 3, 0, 6, 0),
    }


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "data"),
        ("[pl][profile][_TrainingEpochLoop].train_dataloader_next", "data"),
        ("load_batch", "data"),
        ("data loading", "data"),
        ("forward", "forward"),
        ("## forward ##", "forward"),
        ("DistributedDataParallel.forward", "forward"),
        ("fwd_pass", "forward"),
        ("loss.backward", "backward"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "backward"),
        ("Optimizer.step#SGD.step", "optimizer"),
        ("Optimizer.zero_grad#Adam.zero_grad", "optimizer"),
        ("nccl:all_reduce", "communication"),
        ("c10d::allreduce_", "communication"),
        ("forward_backward", None),
        ("aten::_scaled_dot_product_flash_attention_backward", None),
        ("metadata", None),
        ("straightforward", None),
        ("step", None),
    ],
)
def test_names_of_ranges_choose_the_part(message: str, part: str | None) -> None:
    assert part_of(message) == part


def test_operations_of_a_framework(tmp_path: Path) -> None:
    # The engine has a thread of its own; the main thread waits in backward() without a word.
    report = drawn(
        tmp_path,
        """
        main   |[ProfilerStep#1                                     ]
        main   |  [enumerate(DataLoader)]                    [Optimizer.step#SGD.step]
        engine |                                      <
        """,
        tables={
            "ops": [
                op("aten::to", 0, 4, 8, 0),  # in a range that says what it is
                op("aten::linear", 0, 28, 31, 1),
                op("aten::relu", 0, 33, 35, 2),
                op("AddmmBackward0", 1, 38, 42, 3, backward=True),
                op("AddmmBackward0", 1, 43, 44, 4, backward=True),
                op("aten::item", 0, 46, 47, 5),  # behind the backward pass: not forward
            ]
        },
    )
    found = spent(report)
    assert found["forward"] == 35 - 28
    assert found["backward"] == 44 - 38
    assert found["step"] == sum(value for part, value in found.items() if part != "step")
    assert set(found) == {"step", "data", "forward", "backward", "optimizer", "other"}
    assert "GPU Idle (ns)" not in stat(report)[0]


def test_waits_cut_what_they_are_in_and_gaps_of_one_part_close(tmp_path: Path) -> None:
    picture = [
        line("main", (0, 120, "[step")),
        line("main", (2, 30, "[forward"), (70, 82, "[forward"), (85, 100, "[optimizer")),
        line(
            "main:api",
            (4, 28, "(cudaStreamSynchronize"),
            (40, 60, "(cudaMemcpy"),
            (102, 119, "(cudaMemcpyAsync"),
        ),
    ]
    report = drawn(tmp_path, "\n".join(picture))
    wait, forward, optimizer = 24 + 20, 4 + 12 + 20, 15
    assert spent(report, step="step") == {
        "step": 120,
        "forward": forward,
        "optimizer": optimizer,
        "wait": wait,
        "other": 120 - wait - forward - optimizer,
    }


def test_rows_of_steps_skipped_ones_and_names_that_are_given(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        """
        main |[step 1  ][step 2     ]  [step 3         ]
        main | [mine  ]  [mine    ]     [dataloader]
        """,
    )
    assert [row["Data (ns)"] // TICK for row in stat(report, steps=True)] == [0, 0, 12]
    rows = stat(report, steps=True, skip=1, forward="mine")
    assert [
        (row["Step"], row["Name"], row["Start (ns)"] // TICK, row["Forward (ns)"] // TICK) for row in rows
    ] == [
        (1, "step", 10, 10),
        (2, "step", 25, 0),
    ]
    assert stat(report, forward="mine")[0]["Steps"] == 3
    with pytest.raises(MissingData, match="after the first 5"):
        stat(report, skip=5)


def test_processes_are_kept_apart(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        """
        a/main |[step     ][step     ]
        b/main |[step ] [step ]
        b/main | [data]  [data]
        """,
        ranks={"a": 0, "b": 1},
    )
    rows = [(row["Rank"], row["Part"], row["Total Time (ns)"] // TICK) for row in stat(report)]
    assert rows == [(0, "step", 22), (0, "other", 22), (1, "step", 14), (1, "data", 12), (1, "other", 2)]


@pytest.mark.parametrize("seed", few(range(12), 2))
def test_random_steps_against_every_tick(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    names = {
        "load_batch": "data",
        "forward": "forward",
        "backward": "backward",
        "optimizer": "optimizer",
        "nccl:x": "communication",
    }
    ticks: list[str] = []
    lines = ["", "", ""]  # steps; outer parts; inner ones
    while len(ticks) < 300:
        width = rng.randrange(30, 70)
        lines[0] += f"[step{' ' * (width - 6)}]"
        filled = 0
        row: list[str] = []
        while filled < width:
            gap = min(rng.randrange(3, 6), width - filled)
            row += ["none"] * gap
            lines[1] += " " * gap
            lines[2] += " " * gap
            filled += gap
            outer, inner = rng.sample(list(names), 2)
            size = rng.randrange(26, 34)
            if filled + size > width:
                lines[1] += " " * (width - filled)
                lines[2] += " " * (width - filled)
                row += ["none"] * (width - filled)
                break
            lines[1] += f"[{outer:<{size - 2}}]"
            lines[2] += f"   [{inner:<12}]" + " " * (size - 17)
            row += [names[outer]] * 3 + [names[inner]] * 14 + [names[outer]] * (size - 17)
            filled += size
        ticks += _closed(row)
    report = drawn(tmp_path, "\n".join(f"main |{line}" for line in lines))
    counted = Counter(ticks)
    found = {row["Part"]: row["Total Time (ns)"] // TICK for row in stat(report)}
    assert found.pop("step") == len(ticks)
    assert found == dict(counted)
    each = stat(report, steps=True)
    assert sum(row["Duration (ns)"] for row in each) == len(ticks) * TICK
    for part in PARTS:
        assert sum(row[f"{part.capitalize()} (ns)"] for row in each) == counted[part] * TICK


def _closed(row: list[str]) -> list[str]:
    """A step's ticks with the gaps between two stretches of one part closed."""
    result = list(row)
    phases = ("data", "forward", "backward", "optimizer")
    for place, part in enumerate(row):
        if part == "none":
            before = next((one for one in reversed(row[:place]) if one in phases), None)
            behind = next((one for one in row[place:] if one in phases), None)
            result[place] = before if before is not None and before == behind else "other"
    return result
