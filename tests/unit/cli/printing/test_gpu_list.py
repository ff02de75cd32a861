"""The GPUs that `info` lists: each once, whoever uses it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from warplens.cli.group import commands
from warplens.cli.printing.gpu_list import lines
from warplens.testing.timeline import timeline

UNKNOWN = dict.fromkeys(("compute_major", "compute_minor", "multiprocessors", "memory", "bus", "uuid"))


def device(process: int, number: int, name: str, **facts: Any) -> dict[str, Any]:
    return {**UNKNOWN, "process": process, "device": number, "name": name, **facts}


def test_a_gpu_of_several_processes_stands_once() -> None:
    facts = {
        "compute_major": 9,
        "compute_minor": 0,
        "multiprocessors": 132,
        "memory": 80 << 30,
        "bus": "0000:0f:00.0",
        "uuid": "GPU-a",
    }
    rows = [
        device(0, 0, "H100", **facts),
        device(1, 1, "H100", **facts),
        device(2, 0, "GPU 0"),
        device(3, 0, "H\n100"),
    ]
    assert list(lines(rows, {0: 100, 1: 101, 2: 102, 3: 103})) == [
        "GPU 0: name not known; process 102",
        "GPU 0: H\\n100; process 103",
        "GPU 0/1: H100, compute capability 9.0, 132 SMs, 80 GiB, 0000:0f:00.0; processes 100, 101",
    ]
    many = [device(number, 0, "H100", uuid="GPU-a") for number in range(9)]
    assert list(lines(many, {})) == ["GPU 0: H100; process 0"]
    assert list(lines(many, {number: number for number in range(9)})) == ["GPU 0: H100; 9 processes"]


@pytest.mark.slow
def test_info_lists_them(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "gpu0.7 |(k )", cuda={"gpu0": {"name": "H100"}})
    said = CliRunner().invoke(commands, ["info", str(tmp_path / "run")]).stdout
    assert "GPUs\n  GPU 0: H100; process 100\n" in said
    told = json.loads(CliRunner().invoke(commands, ["info", "-f", "json", str(tmp_path / "run")]).stdout)
    assert [row["name"] for row in told["devices"]] == ["H100"]
    timeline(tmp_path / "cpu.warplens", "main |[a ]")
    assert "GPUs" not in CliRunner().invoke(commands, ["info", str(tmp_path / "cpu")]).stdout
