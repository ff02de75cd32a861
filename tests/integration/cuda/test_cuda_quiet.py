"""When nothing comes of the GPU: whether another tool has taken CUPTI, what still waits for its work, and what looking costs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.programs.cuda_running import (
    ALL_APIS,
    CUPTI_UNFINISHED,
    NO_API,
    PROFILER_API,
    STOLEN,
    TOGGLE,
    TRACE,
    CudaPrograms,
)
from tests.support.thorough import few

pytestmark = [pytest.mark.require("native", "gcc")]

WORK = "kernel:first:2000:1:40 sync:1 sleep:20 kernel:second:2000:1:40 sync:1"
# Of the versions where threads share a buffer, and where each has its own.
VERSIONS = ["12.4", "13.0"]


@pytest.fixture
def cuda(tmp_path: Path, target: Target) -> CudaPrograms:
    return CudaPrograms(tmp_path, target)


class TestAnotherTool:
    """It takes over without a word."""

    @pytest.mark.parametrize(
        ("trap", "version"), [("steal=90", "13.0"), ("steal=90", "12.4"), ("steal-kinds=90", "12.4")]
    )
    def test_is_noticed_when_nothing_comes_any_more(
        self, cuda: CudaPrograms, trap: str, version: str
    ) -> None:
        """It even frees our buffers. The call that we make ourselves is missing twice."""
        capture = cuda.capture()
        words = [*WORK.split(), "sleep:200", *["sleep:20", "kernel:later:1000:1", "sync:1"] * 1000]
        run = cuda.until(
            lambda run: STOLEN in run.notices(),
            [cuda.program(version), *words],
            capture,
            version=version,
            traps=trap,
        )
        assert run.notices()[STOLEN]["value"] >= 2_000_000_000
        assert 80 <= len(run.of("kernel")) <= 90

    def test_is_noticed_where_nothing_ever_came(self, cuda: CudaPrograms) -> None:
        """After a while: it may be a CUPTI that does not know such a call."""
        capture = cuda.capture()
        words = ["kernel:later:1000:1", "sync:1", "sleep:20"] * 1000
        run = cuda.until(
            lambda run: STOLEN in run.notices(), [cuda.program(), *words], capture, traps="steal=1"
        )
        assert run.notices()[STOLEN]["value"] >= 4_000_000_000
        assert run.of("kernel") == []

    @pytest.mark.parametrize("flush_ms", [50, 0])
    def test_is_noticed_at_the_end(self, cuda: CudaPrograms, flush_ms: int) -> None:
        """Soon after it came."""
        words = f"kernel:many:1000:1:3000 sync:1 sleep:150 {WORK}"  # more than a buffer
        run = cuda.run(words, traps="steal=3020", capture=cuda.capture(flush_ms=flush_ms))
        assert STOLEN in run.notices()
        assert run.names("kernel")["second"] == 0

    def test_is_refused_and_harms_nothing(self, cuda: CudaPrograms) -> None:
        """As torch.profiler is by CUPTI 13.0: it records no CUDA, we all of it."""
        run = cuda.run(WORK, traps="kineto=20")
        assert "torch's Kineto subscribes: 39" in run.log
        assert run.notices() == {}
        assert run.names("kernel") == {"first": 40, "second": 40}


class TestNobodyElse:
    """No false alarm."""

    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_kernel_that_takes_long(self, cuda: CudaPrograms, version: str) -> None:
        """All that is launched while it runs waits for it in the same buffers."""
        words = f"{WORK} kernel:long:3500000000:2 {'kernel:short:1000:1:4 sync:1 sleep:50 ' * 50} sync:2"
        run = cuda.run(words, version)
        assert run.notices() == {}
        assert run.names("kernel") == {"first": 40, "second": 40, "long": 1, "short": 200}

    @pytest.mark.parametrize("version", few(VERSIONS))
    def test_a_queue_that_is_never_empty(self, cuda: CudaPrograms, version: str) -> None:
        words = f"{WORK} {'kernel:next:30000000:2:2 kernel:short:1000:1:4 sync:1 sleep:50 ' * 50} sync:2"
        run = cuda.run(words, version)
        assert run.notices() == {}
        assert run.names("kernel")["next"] == 100

    @pytest.mark.parametrize("version", VERSIONS)
    def test_work_that_holds_every_buffer_back(self, cuda: CudaPrograms, version: str) -> None:
        """Nothing comes for seconds. Before CUDA 13 the record of our own call is held back with the others."""
        run = cuda.run(
            f"{WORK} sleep:150 {'kernel:next:1000000000:2 sleep:10 ' * 400} kill:{signal.SIGKILL}",
            version,
            code=-9,
        )
        assert run.notices() == {}
        assert run.names("kernel")["next"] < 10

    @pytest.mark.parametrize("flags", [TRACE, TRACE | NO_API])
    def test_flushes_that_nobody_wants(self, cuda: CudaPrograms, flags: int) -> None:
        words = "kernel:short:1000:1:4 sync:1 sleep:50 " * 50
        run = cuda.run(words, capture=cuda.capture(flags=flags, flush_ms=0))
        assert run.notices() == {}
        assert run.names("kernel") == {"short": 200}

    def test_a_cupti_that_does_not_record_the_call(self, cuda: CudaPrograms) -> None:
        run = cuda.run(f"{WORK} sleep:3500", traps="no-choice")
        assert run.notices() == {}

    @pytest.mark.parametrize("version", few(["12.4", "13.0", "13.4"], 2))
    def test_a_program_that_does_nothing(self, cuda: CudaPrograms, version: str) -> None:
        """Our own calls are not shown, though all calls are asked for."""
        run = cuda.run(f"{WORK} sleep:3500", version, capture=cuda.capture(flags=TRACE | ALL_APIS))
        assert run.notices() == {}
        assert len({record["tid"] for record in run.of("api")}) == 1

    @pytest.mark.parametrize("version", [*VERSIONS, "13.4"])
    def test_kinds_that_are_switched(self, cuda: CudaPrograms, version: str) -> None:
        """That forgets which functions were chosen, ours among them."""
        capture = cuda.capture(flags=TRACE | TOGGLE, open=False, trigger=PROFILER_API)
        run = cuda.run(
            "start kernel:a:1000:1 sync:1 sleep:100 stop sleep:10 start kernel:b:1000:1 sync:1 sleep:3500 stop",
            version,
            capture=capture,
        )
        assert STOLEN not in run.notices()
        assert run.names("kernel") == {"a": 1, "b": 1}


class TestIdle:
    """A process that does nothing is left alone, and one that begins again is looked after at once."""

    @pytest.mark.parametrize("version", ["11.8", *VERSIONS])
    def test_few_flushes(self, cuda: CudaPrograms, version: str) -> None:
        """One a second sees whether records still come; the interval is 50 ms."""
        run = cuda.run(f"{WORK} sleep:3000", version, traps="tell-flushes")
        assert 3 <= len([line for line in run.log if line.startswith("flush")]) <= 10

    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_kill_loses_no_more_after_a_pause(self, cuda: CudaPrograms, version: str) -> None:
        run = cuda.run(
            f"{WORK} sleep:1700 kernel:late:1000:1:5 sync:1 sleep:200 kill:{signal.SIGKILL}", version, code=-9
        )
        assert run.names("kernel") == {"first": 40, "second": 40, "late": 5}

    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_kill_loses_the_queue_and_an_interval(self, cuda: CudaPrograms, version: str) -> None:
        """Though the queue is never empty: what runs is held back with what was launched since the flush before."""
        words = f"{'kernel:next:10000000:1 ' * 10} {'kernel:next:10000000:1 sleep:10 ' * 100} kill:{signal.SIGKILL}"
        run = cuda.run(words, version, code=-9)
        assert run.names("kernel")["next"] >= 70  # of 110


class TestTheQueueAtTheEnd:
    """Work that was launched and not waited for."""

    @pytest.mark.parametrize("version", VERSIONS)
    def test_is_waited_for(self, cuda: CudaPrograms, version: str) -> None:
        run = cuda.run("kernel:queued:2000000:1:50", version)
        assert run.names("kernel") == {"queued": 50}
        assert run.dropped(CUPTI_UNFINISHED) == 0

    def test_is_not_waited_for_long(self, cuda: CudaPrograms) -> None:
        run = cuda.run("kernel:long:60000000000:1", traps="tell-flushes")
        assert run.dropped(CUPTI_UNFINISHED) == 1
        assert (
            20 <= len([line for line in run.log if line.startswith("flush")]) <= 60
        )  # 4 ms between them, 200 ms in all
