"""module_sum on a drawn model of two layers, whose backward pass runs layer by layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.stats.drawing import line
from warplens import catalog
from warplens.errors import MissingData
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

TICK, ORIGIN = 1_000, 1_000_000_000
ENGINE = "autograd::engine::evaluate_function: AddmmBackward0"
# Its range, name, begin, end, range of its forward operation.
OPS = [
    (1, "aten::addmm", 15, 25, None),
    (2, "aten::addmm", 55, 65, None),
    (3, ENGINE, 120, 150, None),
    (4, "AddmmBackward0", 125, 145, 2),
    (5, "aten::mm", 126, 140, None),
    (6, ENGINE, 160, 200, None),
    (7, "AddmmBackward0", 165, 190, 1),
    (8, "aten::add_", 210, 220, None),
]


def test_a_module_has_its_forward_and_its_backward_pass(tmp_path: Path) -> None:
    picture = [
        line("main@torch.nn", (0, 100, "[Net")),
        line("main@torch.nn", (10, 40, "[first"), (50, 90, "[second")),
        line("main:api", (16, 18, "(cudaLaunchKernel#1"), (127, 129, "(cudaLaunchKernel#2")),
        line("main:api", (212, 214, "(cudaLaunchKernel#3")),
        line("gpu0.7", (20, 45, "(gemm#1"), (130, 145, "(gemm#2"), (215, 225, "(add#3")),
    ]
    ops = [
        {
            "range": 9_000 + number,
            "process": 0,
            "thread": 0,
            "name": name,
            "start": ORIGIN + begin * TICK,
            "end": ORIGIN + end * TICK,
            "forward": None if forward is None else 9_000 + forward,
        }
        for number, name, begin, end, forward in OPS
    ]
    timeline(tmp_path / "r.warplens", "\n".join(picture), tick_ns=TICK, origin=ORIGIN, tables={"ops": ops})
    table = catalog.find("stats.tables", "module_sum").load().table
    with open_report(tmp_path / "r.warplens") as report:
        rows = table(report, Selection()).to_pylist()
        with pytest.raises(MissingData, match="does not contain module data"):
            table(report, Selection.parse("150us/", None))
    ticks = {
        row["Module"]: [
            row["Calls"],
            *(value // TICK for name, value in row.items() if name.endswith("(ns)")),
        ]
        for row in rows
    }
    # Calls, forward with and without the modules inside, backward with and without them; GPU: forward, backward, self.
    assert ticks == {
        "Net": [1, 100, 30, 70, 0, 25, 15, 0],
        "first": [1, 30, 30, 40, 40, 25, 0, 25],
        "second": [1, 40, 40, 30, 30, 0, 15, 15],
    }
    assert [row["Module"] for row in rows] == ["first", "second", "Net"]
