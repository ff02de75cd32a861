"""What CUPTI is known to do wrong, each once: the program runs as without us, and the recording says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.native.native_build import build_target
from tests.support.programs.cuda_running import (
    CONVERTED,
    CUPTI_DROPPED,
    CUPTI_UNFINISHED,
    CUPTI_UNKNOWN,
    FAILED,
    FINALIZED,
    FLUSH_HUNG,
    TRACE,
    CudaPrograms,
)

pytestmark = [pytest.mark.require("native", "gcc")]

WORK = "kernel:first:2000:1:40 sync:1 sleep:20 kernel:second:2000:1:40 sync:1"


@pytest.fixture
def cuda(tmp_path: Path, target: Target) -> CudaPrograms:
    return CudaPrograms(tmp_path, target)


@pytest.mark.parametrize(("value", "kernels"), [(1, 80), (2, 0)], ids=["the last one", "every one"])
def test_a_flush_that_hangs(cuda: CudaPrograms, value: int, kernels: int) -> None:
    """The program goes on when a context of its own ends, and ends all the same, some seconds later at most."""
    run = cuda.run(f"{WORK} reset", traps=f"hang-flush={value}")
    assert run.notices()[FLUSH_HUNG]["value"] >= 2000
    assert len(run.of("kernel")) == kernels


def test_a_flush_that_is_slow(cuda: CudaPrograms) -> None:
    run = cuda.run(WORK, traps="slow-flush=60")
    assert len(run.of("kernel")) == 80
    assert run.notices() == {}


@pytest.mark.parametrize(
    "trap", ["flush-deadlock", "abba", "no-worker", "own-ids", "gone-context", "exit-callbacks"]
)
def test_no_trap_of_cupti_costs_a_record(cuda: CudaPrograms, trap: str) -> None:
    """Flushes wait for no other; nothing but the records is asked for while CUPTI holds its locks."""
    run = cuda.run(
        f"{WORK} thread kernel:third:1000:2:9 sync:2 reset kernel:fourth:1000:1 sync:1", traps=trap
    )
    assert run.names("kernel") == {"first": 40, "second": 40, "third": 9, "fourth": 1}
    assert run.notices() == {}


def test_cupti_ends_itself(cuda: CudaPrograms) -> None:
    """Nothing is asked of it afterwards: the fake would say so."""
    run = cuda.run(WORK, traps="fatal=50")
    assert run.notices()[FINALIZED].name == "an unrecoverable error"


def test_records_that_cupti_drops_are_counted(cuda: CudaPrograms) -> None:
    run = cuda.run(WORK, traps="drop=5")
    assert run.dropped(CUPTI_DROPPED) > 0
    assert run.dropped(CUPTI_DROPPED) >= 80 - len(run.of("kernel")) > 0


def test_records_of_unknown_kinds_are_counted(cuda: CudaPrograms) -> None:
    """Those between them are read."""
    run = cuda.run(WORK, traps="unknown-kinds=5")
    assert run.names("kernel") == {"first": 40, "second": 40}
    assert run.dropped(CUPTI_UNKNOWN) >= 160 // 5
    assert run.notices() == {}


def test_kernels_that_complete_after_their_context(cuda: CudaPrograms) -> None:
    run = cuda.run(
        "kernel:first:100000000:1 reset kernel:second:1000:1 sync:1 sleep:150", traps="gone-context"
    )
    assert run.names("kernel") == {"first": 1, "second": 1}
    assert run.notices() == {}


@pytest.mark.parametrize("trap", ["broken=35", "refuse-kind=10,refuse-with=35"])
def test_a_driver_that_wants_privileges(cuda: CudaPrograms, trap: str) -> None:
    """ERR_NVGPUCTRPERM: it is about the machine, so no other copy of CUPTI is tried."""
    run = cuda.run(WORK, traps=trap)
    assert run.notices()[FAILED]["value"] == 35
    assert "INSUFFICIENT_PRIVILEGES" in str(run.notices()[FAILED].name)
    assert run.of("kernel") == []


def test_a_clock_that_is_taken_late(cuda: CudaPrograms) -> None:
    """CUPTI's time is our time once there is a context: no offset is added."""
    run = cuda.run("kernel:first:5000:1:5 sync:1", traps="late-clock")
    assert run.notices() == {}
    really = sorted((event["start"], event["end"]) for event in run.truth if event.get("name") == "first")
    seen = sorted((record["start"], record["end"]) for record in run.of("kernel"))
    assert all(
        abs(a - b) < 1_000_000
        for pair, other in zip(seen, really, strict=True)
        for a, b in zip(pair, other, strict=True)
    )


def test_a_clock_that_is_refused(cuda: CudaPrograms) -> None:
    """Times are moved to ours."""
    run = cuda.run("kernel:first:5000:1:5 sync:1", traps="no-clock")
    assert run.notices()[CONVERTED]["value"] < 1_000_000
    really = {(event["start"], event["end"]) for event in run.truth if event.get("name") == "first"}
    for kernel, (start, end) in zip(
        sorted(run.of("kernel"), key=lambda record: record["start"]), sorted(really), strict=True
    ):
        assert abs(kernel["start"] - start) < 1_000_000
        assert abs(kernel["end"] - end) < 1_000_000


def test_work_that_still_runs_at_the_end(cuda: CudaPrograms) -> None:
    run = cuda.run("kernel:first:1000:1:3 sync:1 kernel:long:60000000000:1 kernel:behind:1000:1:4")
    assert run.names("kernel") == {"first": 3}
    assert run.dropped(CUPTI_UNFINISHED) == 5


@pytest.mark.parametrize("version", ["11.8", "12.4", "13.0"])
def test_no_memory_for_buffers(cuda: CudaPrograms, version: str, tmp_path: Path) -> None:
    """Versions below 27 crash when they are given none, so they get one for the bin; the others count for themselves."""
    stingy = build_target("no_buffers", tmp_path / "no_buffers.so", words=("-shared", "-fPIC"))
    run = cuda.run(
        f"{WORK} sleep:2500", version, capture=cuda.capture(TRACE), variables={"LD_PRELOAD": str(stingy)}
    )
    assert run.of("kernel") == run.of("api") == []
    lost = sum(spool.dropped[slot] for spool in run.spools for slot in (*range(32, 48), CUPTI_DROPPED))
    assert lost >= 160  # kernels and their calls
    assert run.notices() == {}  # nobody is blamed for it
