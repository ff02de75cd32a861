"""A program on the look-alike CUDA, profiled, then looked at: the summary, the terminal timeline, and the export for Perfetto."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.native.fake_cuda import FakeCuda, truth
from tests.support.programs.launching import environment, warplens

pytestmark = [pytest.mark.require("gcc", "native")]
SCRIPT = "malloc:1048576 h2d:1000000:1 kernel:_Z5firstPf:200000:1:5 kernel:second:100000:2:3 d2h:4096:2 sync:2 memset:7:65536:1 device_sync"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, target: Target) -> Path:
    fake = FakeCuda()
    folder = tmp_path_factory.mktemp("pictures")
    env = environment(**fake.environment(truth=folder / "truth"), TRUTH=str(folder / "said"))
    words: list[str | Path] = [
        "-o",
        "run",
        "--trace=cuda,nvtx",
        "--cuda-memory-usage=true",
        "--gpu-metrics=none",
        target("cuda_program", *fake.words()),
    ]
    run = warplens("profile", *words, *SCRIPT.split(), cwd=folder, env=env)
    assert run.returncode == 0, run.stderr
    (folder / "summary").write_text(run.stderr, encoding="utf-8")
    return folder


def test_the_summary_tells_what_the_gpu_did(folder: Path) -> None:
    words = " ".join((folder / "summary").read_text(encoding="utf-8").split())
    assert "8 kernels, 2 memcpys, 1 memset in " in words
    assert "GPU 0 Fake GPU 0: busy " in words
    assert "5 x first" in words
    assert "3 x second" in words
    assert "Host-to-Device 977 KiB at " in words
    assert "Device-to-Host 4.00 KiB at " in words


def test_the_timeline_shows_it(folder: Path) -> None:
    shown = warplens("timeline", "run", "--width", "200", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    lines = [line.strip() for line in shown.stdout.splitlines()]
    gpu = next(index for index, line in enumerate(lines) if line.startswith("GPU 0: Fake GPU 0"))
    assert any(line.startswith("CUDA API") for line in lines[:gpu])
    first = [line.split("  ")[0].split()[0] for line in lines[gpu + 1 :] if line]
    assert first[:2] == ["busy", "stream"]
    assert {"HtoD", "DtoH", "Memset", "memory"} <= set(first)


def test_the_export_has_every_piece_of_work_and_its_arrow(folder: Path) -> None:
    made = warplens("export", "-t", "chrome", "-o", "run.json", "run", cwd=folder)
    assert made.returncode == 0, made.stderr
    events = json.loads((folder / "run.json").read_text(encoding="utf-8"))["traceEvents"]
    done = [line for line in truth(folder / "truth") if line["what"] in ("kernel", "memcpy", "memset")]
    work = [
        event
        for event in events
        if event["ph"] == "X" and event["cat"] in ("cuda_kernel", "cuda_memcpy", "cuda_memset")
    ]
    assert len(work) == len(done) == 11
    begins, ends = ({event["id"] for event in events if event["ph"] == side} for side in "sf")
    assert len(begins) == 11
    assert begins == ends
