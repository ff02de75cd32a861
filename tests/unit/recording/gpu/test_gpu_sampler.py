"""What is sampled of the GPUs, with a library that looks like NVIDIA's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.native.fake_nvml import fake_nvml
from tests.support.programs.launching import until
from warplens.recording.gpu.readings import Readings
from warplens.recording.gpu.sampler import FILE, GpuSampler
from warplens.recording.options.gpu import GpuMetrics

pytestmark = pytest.mark.require("gcc")
CHOSEN = GpuMetrics(frequency=100, chosen=True)
Sample = Callable[..., tuple[GpuSampler, list[Any]]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the library."""
    folder = tmp_path_factory.mktemp("nvml")
    fake_nvml(folder)
    return folder


@pytest.fixture
def sample(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sample:
    """Sample until there are enough lines; return the sampler and the lines."""

    def run(
        options: GpuMetrics,
        words: str = "",
        lines: int = 5,
        gpus: int = 2,
        recording: Callable[[], bool] = lambda: True,
    ) -> tuple[GpuSampler, list[Any]]:
        variables = fake_nvml(library, words, gpus)
        for name in ("FAKE_NVML", "FAKE_NVML_GPUS"):
            monkeypatch.setenv(name, variables[name])
        sampler = GpuSampler(tmp_path, options, recording, str(library / "libnvidia-ml.so.1"))
        path = tmp_path / FILE
        sampler.start()
        until(
            lambda: sampler._ended.is_set() or (path.exists() and path.read_text().count("\n") >= lines),
            "lines of the sampler",
        )
        sampler.stop()
        return sampler, [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return run


def _values(line: list[Any], gpm: bool = False) -> dict[str, Any]:
    return dict(zip((name for name, _ in Readings.metrics(gpm=gpm)), line[2], strict=True))


def test_each_gpu_is_read_at_times_that_grow(sample: Sample) -> None:
    begin = time.monotonic_ns()
    sampler, (head, *lines) = sample(CHOSEN, lines=7)
    assert sampler.problem is None
    assert [(gpu["gpu"], gpu["name"]) for gpu in head["gpus"]] == [(0, "Fake GPU 0"), (1, "Fake GPU 1")]
    assert head["gpus"][1]["uuid"].startswith("GPU-00000001-")
    assert [tuple(metric) for metric in head["metrics"]] == Readings.metrics(gpm=False)
    assert [line[1] for line in lines[:6]] == [0, 1] * 3
    assert begin < lines[0][0] <= lines[-1][0] < time.monotonic_ns()
    assert [line[0] for line in lines] == sorted(line[0] for line in lines)
    assert _values(lines[0]) == {
        "GPU Utilization": 40.0,
        "Memory Utilization": 20.0,
        "Memory Used": float(10 << 30),
        "Power": 500.5,
        "SM Clock": 1980.0,
        "Memory Clock": 2619.0,
        "Temperature": 65.0,
        "throttle reasons": 4.0,
    }


def test_gpm_adds_what_lies_between_two_readings(sample: Sample) -> None:
    sampler, (head, *lines) = sample(GpuMetrics("gpm", 100, chosen=True), "gpm", lines=7)
    assert sampler.problem is not None
    assert "for GPU 1 (Fake GPU 1) the report only has NVML's metrics" in sampler.problem[1]
    assert ["SM Active", "%"] in head["metrics"]
    first, second = (_values(line, gpm=True) for line in [line for line in lines if line[1] == 0][:2])
    assert first["SM Active"] is None
    assert first["Power"] == 500.5
    assert (second["SM Active"], second["DRAM Bandwidth"], second["PCIe Sent"]) == (
        2.0,
        10.0,
        20.0 * (1 << 20),
    )
    assert second["FP64 Active"] is None
    other = _values([line for line in lines if line[1] == 1][1], gpm=True)
    assert other["SM Active"] is None
    assert other["Power"] == 500.5


def test_metrics_that_a_gpu_lacks_are_missing(sample: Sample) -> None:
    _, (_, *lines) = sample(CHOSEN, "mig")
    assert [_values(lines[0])[name] for name in ("GPU Utilization", "Memory Utilization", "Power")] == [
        None,
        None,
        500.5,
    ]


def test_a_gpu_that_is_lost_is_counted(sample: Sample) -> None:
    sampler, (_, *lines) = sample(CHOSEN, "lost", lines=12)
    assert len([line for line in lines if line[1] == 1]) == 3
    assert len([line for line in lines if line[1] == 0]) > 3
    assert sampler.missed > 0


def test_only_the_gpus_that_were_asked_for(sample: Sample) -> None:
    _, (head, *lines) = sample(GpuMetrics(frequency=100, devices=(1, 7)))
    assert [gpu["gpu"] for gpu in head["gpus"]] == [1]
    assert {line[1] for line in lines} == {1}


def test_gpus_are_read_inside_of_windows_only(sample: Sample) -> None:
    asked: list[None] = []

    def recording() -> bool:
        asked.append(None)
        return len(asked) % 4 == 0

    _, (_, *lines) = sample(CHOSEN, lines=7, recording=recording)
    assert len(lines) == 2 * (len(asked) // 4)


@pytest.mark.parametrize(
    ("words", "gpus", "said"), [("nodriver", 2, "Driver Not Loaded"), ("", 0, "No GPU found")]
)
def test_without_gpus_only_who_asked_hears_of_it(sample: Sample, words: str, gpus: int, said: str) -> None:
    sampler, lines = sample(CHOSEN, words, gpus=gpus)
    assert sampler.problem is not None
    assert said in sampler.problem[1]
    silent, more = sample(GpuMetrics(), words, gpus=gpus)
    assert (silent.problem, lines, more) == (None, [], [])


def test_without_the_library_only_who_asked_hears_of_it(tmp_path: Path) -> None:
    for chosen in (True, False):
        sampler = GpuSampler(
            tmp_path, GpuMetrics(chosen=chosen), lambda: True, str(tmp_path / "libnvidia-ml.so.1")
        )
        sampler.start()
        sampler.stop()
        assert (sampler.problem is not None) == chosen
    assert list(tmp_path.iterdir()) == []


def test_a_driver_that_hangs_holds_nobody_up(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NVML", "hang")
    monkeypatch.setattr("warplens.recording.gpu.sampler._PATIENCE_S", 0.05)
    sampler = GpuSampler(tmp_path, CHOSEN, lambda: True, str(library / "libnvidia-ml.so.1"))
    sampler.start()
    sampler.stop()
    assert sampler.problem is not None
    assert "the driver did not answer" in sampler.problem[1]
