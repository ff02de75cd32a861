"""What to sample of the GPUs, as it is typed."""

from __future__ import annotations

import pytest

from warplens.cli.options.arguments import split
from warplens.cli.options.capture_arguments import NAMES, capture_options
from warplens.cli.options.gpu_arguments import slower_than_asked
from warplens.errors import UsageError
from warplens.recording.options.gpu import GpuMetrics


def _given(text: str) -> dict[str, str]:
    return dict(option.split("=", 1) for option in split([*text.split(), "prog"], NAMES).options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", GpuMetrics()),
        ("--gpu-metrics none", GpuMetrics("none", chosen=True)),
        ("--gpu-metrics=NVML", GpuMetrics("nvml", chosen=True)),
        ("--gpu-metrics gpm --gpu-metrics-frequency 20", GpuMetrics("gpm", 20.0, chosen=True)),
        ("--gpu-metrics-frequency=0.5", GpuMetrics(frequency=0.5)),
        ("--gpu-metrics-frequency=10000", GpuMetrics(frequency=100.0)),
        ("--gpu-metrics-devices=all", GpuMetrics(chosen=True)),
        ("--gpu-metrics-device=0", GpuMetrics(devices=(0,), chosen=True)),
        ("--gpu-metrics-devices=3,1,3 --gpu-metrics=gpm", GpuMetrics("gpm", devices=(3, 1), chosen=True)),
        ("--gpu-metrics-devices=none", GpuMetrics("none", chosen=True)),
        ("--gpu-metrics-devices=none --gpu-metrics=gpm", GpuMetrics("none", chosen=True)),
    ],
)
def test_gpu_arguments_become_options(text: str, expected: GpuMetrics) -> None:
    assert capture_options(_given(text)).gpu_metrics == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--gpu-metrics all", "write none, nvml or gpm"),
        ("--gpu-metrics-frequency often", "a number of samples per second"),
        ("--gpu-metrics-frequency 0", "from 0.1 to 100"),
        ("--gpu-metrics-frequency nan", "from 0.1 to 100"),
        ("--gpu-metrics-devices 0,,1", "GPU numbers"),
        ("--gpu-metrics-devices GPU-1", "GPU numbers"),
    ],
)
def test_nonsense_is_said(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        capture_options(_given(text))
    assert said in str(caught.value)


def test_a_rate_above_the_limit_prints_a_note() -> None:
    assert slower_than_asked(_given("--gpu-metrics-frequency 100")) is None
    assert slower_than_asked({}) is None
    assert "at most 100 times a second" in str(slower_than_asked(_given("--gpu-metrics-frequency 10000")))
