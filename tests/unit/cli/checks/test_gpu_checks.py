"""What `doctor` says of CUDA, with and without a driver that looks like NVIDIA's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.native.fake_cuda import FakeCuda
from tests.support.native.fake_nvml import fake_nvml
from tests.support.programs.launching import environment

pytestmark = pytest.mark.slow


def _findings(*libraries: str, **variables: str) -> dict[str, tuple[str, str]]:
    text = (
        "import json, sys; from pathlib import Path; from warplens.cli.checks.gpu import gpu_findings; "
        "print(json.dumps(list(gpu_findings([Path(path) for path in sys.argv[1:]]))))"
    )
    command = [sys.executable, "-c", text, *libraries]
    done = subprocess.run(
        command, env=environment(**variables), capture_output=True, text=True, check=True, timeout=60
    )
    return {name: (state, said) for name, state, said in json.loads(done.stdout)}


def test_without_a_driver_there_is_nothing_to_record() -> None:
    found = _findings()
    assert found["cuda"][0] == "note"
    assert "no CUDA driver" in found["cuda"][1]
    assert "pip install nvidia-cuda-cupti" in found["cupti"][1]
    assert not {"gpu", "gpu metrics", "other tool"} & found.keys()
    assert _findings("/cu13/libcupti.so.13")["cupti"] == (
        "ok",
        "found for this Python, unused without a driver:\n/cu13/libcupti.so.13",
    )


@pytest.mark.require("gcc")
def test_driver_gpus_cupti_and_other_tools(tmp_path: Path) -> None:
    gpus = fake_nvml(tmp_path, "gpm")
    path = f"{gpus.pop('LD_LIBRARY_PATH')}:{FakeCuda('12.4').folder}"
    found = _findings(
        "/cu13/libcupti.so.13",
        "/cu12/libcupti.so.12",
        LD_LIBRARY_PATH=path,
        CUDA_INJECTION64_PATH="/other/tool.so",
        **gpus,
    )
    assert found["cuda"] == ("ok", "the driver supports CUDA up to 12.4")
    assert found["gpu"][0] == "ok"
    lines = found["gpu"][1].splitlines()
    assert lines[0] == "driver 580.95.05, 2 GPUs"
    assert [line.endswith("nvml or gpm)") for line in lines[1:]] == [True, False]
    assert found["cupti"][0] == "ok"
    assert found["cupti"][1].splitlines()[1:] == ["/cu13/libcupti.so.13", "/cu12/libcupti.so.12"]
    assert found["other tool"][0] == "note"
    assert "/other/tool.so" in found["other tool"][1]


@pytest.mark.require("gcc")
def test_a_cupti_that_is_newer_than_the_driver() -> None:
    found = _findings("/cu13/libcupti.so.13", LD_LIBRARY_PATH=str(FakeCuda("12.4").folder))
    assert found["cupti"][0] == "note"
    assert found["gpu metrics"][0] == "note"
