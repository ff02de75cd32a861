"""What becomes of CUPTI's records on their way into the spool: real agent, look-alike CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.programs.capturing import Capture
from tests.support.programs.cuda_running import ALL_APIS, TRACE, CudaPrograms
from warplens.recording.agent.library import CudaSettings

pytestmark = [pytest.mark.require("native", "gcc")]

KERNEL_CALLS, MEMORY_CALLS, SYNC_CALLS, OTHER_CALLS = 1, 2, 4, 8
MS = 1_000_000


@pytest.fixture
def cuda(tmp_path: Path, target: Target) -> CudaPrograms:
    return CudaPrograms(tmp_path, target)


def backtraces(cuda: CudaPrograms, which: int, *least_ms: int) -> Capture:
    least = tuple(ms * MS for ms in least_ms) + (0,) * (4 - len(least_ms))
    settings = CudaSettings(flags=TRACE, flush_ms=50, backtrace=which, backtrace_ns=least[:4])  # type: ignore[arg-type]
    return Capture(cuda.folder / "spool-backtraces", open=True, cuda=settings)


class TestBacktraces:
    words = "malloc:4096 kernel:long:30000000:1:2 sync:1 sync:1 h2d:4096:1 free"

    def test_every_call_of_a_category(self, cuda: CudaPrograms) -> None:
        run = cuda.run(self.words, capture=backtraces(cuda, KERNEL_CALLS))
        found = run.of("backtrace")
        launches = {
            call["correlation"]: call for call in run.of("api") if "LaunchKernel" in (call.name or "")
        }
        assert {record["correlation"] for record in found} == launches.keys()
        assert len(found) == len(launches) == 2  # the driver's function within the runtime's is the same call
        for record in found:
            call = launches[record["correlation"]]
            assert call["start"] <= record["start"] <= record["end"] <= call["end"] + MS
            assert (record["category"], record["tid"], record["frames"]) == (KERNEL_CALLS, call["tid"], 0)

    def test_calls_that_take_long(self, cuda: CudaPrograms) -> None:
        capture = backtraces(cuda, KERNEL_CALLS | MEMORY_CALLS | SYNC_CALLS, 4000, 4000, 50)
        found = cuda.run("malloc:4096 kernel:long:300000000:1 sync:1 sync:1 free", capture=capture).of(
            "backtrace"
        )
        assert 1 <= len(found) <= 2  # the second wait is for nothing, but the machine may be busy
        for record in found:
            assert record["category"] == SYNC_CALLS
            assert record["end"] - record["start"] >= 50 * MS
            assert "StreamSynchronize" in (record.name or "")

    def test_the_driver_api(self, cuda: CudaPrograms) -> None:
        run = cuda.run(f"driver {self.words}", capture=backtraces(cuda, KERNEL_CALLS | MEMORY_CALLS))
        names = {record.name or "" for record in run.of("backtrace")}
        assert any(name.startswith("cuLaunchKernel") for name in names)
        assert any(name.startswith("cuMemcpyHtoD") for name in names)
        assert not any("Synchronize" in name for name in names)

    def test_without_the_option_no_stack_is_recorded(self, cuda: CudaPrograms) -> None:
        assert cuda.run(self.words).of("backtrace") == []


@pytest.mark.parametrize("traps", ["", "own-ids", "out-of-order", "own-ids,out-of-order"])
def test_a_call_counts_once(cuda: CudaPrograms, traps: str) -> None:
    """The runtime's functions call the driver's, which are recorded where the program calls them, or all are asked for."""
    words = "kernel:first:1000:1:20 sync:1"
    launches = [
        record.name
        for record in cuda.run(words, traps=traps).of("api")
        if "LaunchKernel" in (record.name or "")
    ]
    assert launches == ["cudaLaunchKernel_v7000"] * 20
    launches = [
        record.name
        for record in cuda.run(f"driver {words}", traps=traps).of("api")
        if "LaunchKernel" in (record.name or "")
    ]
    assert launches == ["cuLaunchKernel"] * 20
    every = cuda.run(words, traps=traps, capture=cuda.capture(flags=TRACE | ALL_APIS)).names("api")
    assert every["cudaLaunchKernel_v7000"] == every["cuLaunchKernel"] == 20


def test_devices_have_their_pci_bus(cuda: CudaPrograms) -> None:
    """Which CUPTI does not say, but the driver."""
    run = cuda.run("kernel:first:1000:1 sync:1")
    assert {record["device"]: record["pci_bus"] for record in run.of("device")} == {0: 0x17, 1: 0x18}
    handles = {record["handle"] for record in run.of("stream")}
    assert len(handles - {0}) >= 1


def test_a_limit_of_the_files(cuda: CudaPrograms) -> None:
    """What has no room is counted, by what it was."""
    run = cuda.run("kernel:first:1000:1:20000 sync:1", capture=cuda.capture(max_bytes=1 << 20))
    kernels, calls = (len(run.of(kind)) for kind in ("kernel", "api"))
    assert 0 < kernels < 20_000
    assert kernels + run.dropped(33) == 20_000
    assert calls + run.dropped(32) >= 20_001


def test_a_flight_recorder(cuda: CudaPrograms) -> None:
    """The last moments are there, and the file does not grow for ever."""
    words = f"{'kernel:first:1000:1:15000 sleep:100 ' * 3} kernel:last:1000:1:50 sync:1"
    run = cuda.run(words, capture=cuda.capture(keep_ns=20 * MS))
    kernels = run.names("kernel")
    assert kernels["last"] == 50
    assert 0 < kernels["first"] < 45_000
    assert run.dropped(32) == run.dropped(33) == 0
    assert {record["device"] for record in run.of("device")} == {0, 1}
