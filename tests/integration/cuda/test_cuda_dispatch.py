"""How the agent finds CUPTI, subscribes, and follows the windows: real agent, look-alike CUDA."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.native.fake_cuda import VERSIONS, FakeCuda
from tests.support.optional_dependencies import ROOT
from tests.support.programs.capturing import COMMAND
from tests.support.programs.cuda_running import (
    ALL_APIS,
    BUSY,
    FAILED,
    GATED,
    NO_API,
    NO_CUPTI,
    PATIENCE_S,
    PROFILER_API,
    RECORDING,
    TOGGLE,
    TRACE,
    CudaPrograms,
)

pytestmark = [pytest.mark.require("native", "gcc")]


@pytest.fixture
def cuda(tmp_path: Path, target: Target) -> CudaPrograms:
    return CudaPrograms(tmp_path, target)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_a_program_does_is_recorded(cuda: CudaPrograms, version: str) -> None:
    run = cuda.run(
        "kernel:first:5000:1:40 h2d:4096:1 memset:7:512:1 thread kernel:second:2000:2:3 sync:1 device_sync",
        version,
    )
    assert run.names("kernel") == {"first": 40, "second": 3}
    assert [record["bytes"] for record in run.of("memcpy")] == [4096]
    assert [record["bytes"] for record in run.of("memset")] == [512]
    assert sorted(record["kind"] for record in run.of("sync")) == [3, 4]
    assert {record.name for record in run.of("device")} == {"Fake GPU 0", "Fake GPU 1"}
    launches = [record for record in run.of("api") if record.name and "LaunchKernel" in record.name]
    assert len(launches) == 43
    assert {record["correlation"] for record in run.of("kernel")} == {
        record["correlation"] for record in launches
    }
    assert len({record["tid"] for record in launches}) == 2
    assert run.notices() == {}
    assert [record["value"] for record in run.of("notice") if record["notice"] == RECORDING] != []


def test_times_are_those_of_our_clock(cuda: CudaPrograms) -> None:
    run = cuda.run("kernel:first:5000:1:5 sync:1")
    seen = sorted((record["start"], record["end"]) for record in run.of("kernel"))
    really = sorted((event["start"], event["end"]) for event in run.truth if event.get("name") == "first")
    assert len(seen) == len(really) == 5
    # The agent computes the time from the counter, the fake asks the kernel: they agree to some microseconds.
    assert all(
        abs(a - b) < 100_000
        for pair, other in zip(seen, really, strict=True)
        for a, b in zip(pair, other, strict=True)
    )


def test_without_cuda_traces_the_agent_does_not_touch_cuda(cuda: CudaPrograms) -> None:
    run = cuda.run("kernel:first:5000:1 sync:1", capture=cuda.capture(flags=0))
    assert run.spools == []
    assert [line for line in run.log if "injection" not in line] == []


def test_without_the_driver_nothing_happens(cuda: CudaPrograms) -> None:
    """Some versions of CUPTI crash without it."""
    capture = cuda.capture()
    code = f"import ctypes; assert ctypes.CDLL({str(capture.agent.path)!r}).InitializeInjection() == 1"
    done = subprocess.run(
        [sys.executable, "-c", code], env=cuda.environment(capture), timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0
    assert list(capture.spool.glob("*.spool")) == []


@pytest.mark.parametrize("version", ["12.4", "13.0"])
def test_calls_that_just_ask_are_left_out(cuda: CudaPrograms, version: str) -> None:
    """By CUPTI itself where it can, else by the agent."""
    words = "kernel:first:1000:1:3 event:1 last_error last_error query_event sync:1"
    assert not [name for name in cuda.run(words, version).names("api") if "LastError" in str(name)]
    everything = cuda.run(words, version, capture=cuda.capture(flags=TRACE | ALL_APIS)).names("api")
    assert sum(count for name, count in everything.items() if "LastError" in str(name)) >= 2


def test_the_work_of_the_gpu_alone(cuda: CudaPrograms) -> None:
    run = cuda.run("kernel:first:1000:1:3 sync:1", capture=cuda.capture(flags=TRACE | NO_API))
    assert run.names("kernel") == {"first": 3}
    assert run.of("api") == run.of("sync") == []


def build_broken_cupti(path: Path, subscribe: int = 999) -> Path:
    """Build a libcupti 13.0.1 that has every function, does nothing, and whose cuptiSubscribe fails with CUPTI_ERROR_UNKNOWN."""
    names = re.findall(
        r"X\(\w+, (cupti\w+),",
        (ROOT / "native/drivers/cupti.h").read_text().partition("WARPLENS_CUPTI_OPTIONAL")[0],
    )
    own = {
        "cuptiGetVersion": "unsigned *version) { *version = 130001; return 0; }",
        "cuptiGetResultString": 'int result, const char **text) { (void)result; *text = "CUPTI_ERROR_UNKNOWN"; return 0; }',
        "cuptiSubscribe": f"void) {{ return {subscribe}; }}",
    }
    source = "".join(f"int {name}({own.get(name, 'void) { return 0; }')}\n" for name in names)
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True
    )
    return path


class TestFinding:
    """Which libcupti is taken. The program is linked against libcuda alone; its copy of CUPTI lies elsewhere."""

    @pytest.fixture
    def apart(self, tmp_path: Path) -> Path:
        folder = tmp_path / "driver"
        folder.mkdir()
        shutil.copy(FakeCuda().folder / "libcuda.so.1", folder)
        return folder

    def run(self, cuda: CudaPrograms, apart: Path, **more: str) -> tuple[dict[int, str | None], int]:
        """The texts of the notices by their numbers, and how many kernels there are."""
        run = cuda.run("kernel:first:1000:1:3 sync:1", variables={"LD_LIBRARY_PATH": str(apart), **more})
        return {record["notice"]: record.name for record in run.of("notice")}, len(run.of("kernel"))

    def test_without_a_fitting_cupti_a_notice_says_so(self, cuda: CudaPrograms, apart: Path) -> None:
        """Whatever this machine has is newer than such a driver."""
        notices, kernels = self.run(cuda, apart, FAKE_CUDA_DRIVER="9000")
        assert NO_CUPTI in notices
        assert kernels == 0

    def test_the_named_one_and_no_other(self, cuda: CudaPrograms, apart: Path, tmp_path: Path) -> None:
        (apart / "mine.so").symlink_to("libcuda.so.1")
        (apart / "libcupti.so.13").symlink_to("libcuda.so.1")
        assert self.run(cuda, apart, WARPLENS_CUPTI=str(apart / "mine.so"))[1] == 3
        notices, kernels = self.run(cuda, apart, WARPLENS_CUPTI=str(tmp_path / "absent.so"))
        assert "absent.so" in str(notices[NO_CUPTI])
        assert kernels == 0

    @pytest.mark.parametrize("where", ["WARPLENS_CUPTI_SEARCH", "CUDA_HOME", "LD_LIBRARY_PATH"])
    def test_cupti_is_searched_in_the_given_folders(
        self, cuda: CudaPrograms, apart: Path, tmp_path: Path, where: str
    ) -> None:
        below = tmp_path / "toolkit" / "extras" / "CUPTI" / "lib64"
        below.mkdir(parents=True)
        (below / "libcupti.so.13").symlink_to(apart / "libcuda.so.1")
        value = {
            "WARPLENS_CUPTI_SEARCH": f"{tmp_path}/absent.so:{below}/libcupti.so.13",
            "CUDA_HOME": str(tmp_path / "toolkit"),
            "LD_LIBRARY_PATH": f"{apart}:{below}",
        }[where]
        environment = {"LD_LIBRARY_PATH": str(apart), where: value}
        run = cuda.run("kernel:first:1000:1:3 sync:1", variables=environment)
        assert len(run.of("kernel")) == 3

    @pytest.mark.parametrize("other", ["WARPLENS_CUPTI_SEARCH", "CUDA_HOME"])
    def test_the_loaders_path_wins_over_every_other_place(
        self, cuda: CudaPrograms, apart: Path, tmp_path: Path, other: str
    ) -> None:
        """The copy elsewhere does not work, which would be noted if it had been tried."""
        kit = tmp_path / "kit"
        broken = build_broken_cupti(kit / "lib64" / "libcupti.so.13")
        (apart / "libcupti.so.13").symlink_to("libcuda.so.1")
        notices, kernels = self.run(cuda, apart, **{other: str(kit if other == "CUDA_HOME" else broken)})
        assert notices[RECORDING] == str(apart / "libcuda.so.1")
        assert kernels == 3

    def test_a_copy_that_cannot_be_subscribed_to_is_left_for_the_next(
        self, cuda: CudaPrograms, apart: Path, tmp_path: Path
    ) -> None:
        broken = build_broken_cupti(tmp_path / "libcupti.so.13")
        (apart / "libcupti.so.13").symlink_to("libcuda.so.1")
        search = f"{broken}:{apart}/libcupti.so.13"
        notices, kernels = self.run(
            cuda, tmp_path / "nothing", WARPLENS_CUPTI_SEARCH=search, LD_PRELOAD=str(apart / "libcuda.so.1")
        )
        assert kernels == 3
        assert str(notices[RECORDING]).endswith(
            f", since cuptiSubscribe failed in {broken} (CUPTI_ERROR_UNKNOWN)"
        )

    def test_the_copy_that_the_program_has_loaded(
        self, cuda: CudaPrograms, apart: Path, tmp_path: Path
    ) -> None:
        """A second one in the process would see nothing."""
        deaf = build_broken_cupti(tmp_path / "libcupti.so.13", subscribe=0)
        (tmp_path / "loaded").mkdir()
        loaded = tmp_path / "loaded" / "libcupti.so.13"
        shutil.copy(apart / "libcuda.so.1", loaded)
        notices, kernels = self.run(
            cuda, tmp_path / "nothing", WARPLENS_CUPTI_SEARCH=str(deaf), LD_PRELOAD=str(loaded)
        )
        assert notices[RECORDING] == str(loaded)
        assert kernels == 3

    def test_the_message_names_every_copy_that_was_tried(
        self, cuda: CudaPrograms, apart: Path, tmp_path: Path
    ) -> None:
        first, second = (build_broken_cupti(tmp_path / name / "libcupti.so.13") for name in ("a", "b"))
        run = cuda.run(
            "kernel:first:1000:1:3 sync:1",
            variables={"LD_LIBRARY_PATH": str(apart), "WARPLENS_CUPTI_SEARCH": f"{first}:{second}"},
        )
        failed = run.notices()[FAILED]
        assert failed["value"] == 999
        assert f"cuptiSubscribe of {first} (CUPTI_ERROR_UNKNOWN), {second} (CUPTI_ERROR_UNKNOWN)" in str(
            failed.name
        )
        assert run.of("kernel") == []

    def test_a_newer_one_than_the_driver_is_left(self, cuda: CudaPrograms, apart: Path) -> None:
        (apart / "libcupti.so.13").symlink_to("libcuda.so.1")
        notices, kernels = self.run(cuda, apart, FAKE_CUDA_DRIVER="12080")
        assert "newer than the driver" in str(notices[NO_CUPTI])
        assert kernels == 0


@pytest.mark.parametrize("version", ["12.4", "13.0", "13.4"])
def test_another_tool_has_it(cuda: CudaPrograms, version: str) -> None:
    run = cuda.run(
        "kernel:first:1000:1:3 sync:1", version, "busy", variables={"FAKE_CUPTI_OTHER": "CUPTI for somebody"}
    )
    assert run.notices()[BUSY]["value"] == 39
    assert run.notices()[BUSY].name == (None if version == "12.4" else "CUPTI for somebody")
    assert run.of("kernel") == []
    if version == "13.4":
        assert "clock registered" not in run.log  # it would have been the other tool's


def test_several_tools_where_the_driver_allows_it(cuda: CudaPrograms) -> None:
    assert "subscribed 1" in cuda.run("kernel:first:1000:1:3 sync:1", "13.4").log
    run = cuda.run("kernel:first:1000:1:3 sync:1", "13.4", "old-driver")
    assert "subscribed 0" in run.log
    assert run.names("kernel") == {"first": 3}


@pytest.mark.parametrize(("version", "driver"), [("12.4", "13000"), ("13.0", "13040"), ("13.4", "13000")])
def test_a_driver_of_another_age(cuda: CudaPrograms, version: str, driver: str) -> None:
    """Newer than CUPTI, or older by a minor version: such a CUPTI has no more than one subscriber."""
    traps = "old-driver" if version == "13.4" else ""
    run = cuda.run("kernel:first:1000:1:3 sync:1", version, traps, variables={"FAKE_CUDA_DRIVER": driver})
    assert run.names("kernel") == {"first": 3}
    assert run.notices() == {}


def test_numbers_of_devices_are_those_that_the_program_sees(cuda: CudaPrograms) -> None:
    """CUPTI describes hidden ones, too, by numbers that others have."""
    variables = {"FAKE_CUDA_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "2,0"}
    run = cuda.run("kernel:first:1000:1 sync:1 device:1 kernel:second:1000:2 sync:2", variables=variables)
    last = {record["device"]: (record.name, record["pci_bus"]) for record in run.of("device")}
    assert {number: last[number] for number in (0, 1)} == {0: ("Fake GPU 2", 0x19), 1: ("Fake GPU 0", 0x17)}
    assert {record.name: record["device"] for record in run.of("kernel")} == {"first": 0, "second": 1}


def test_cupti_that_cannot_start(cuda: CudaPrograms) -> None:
    run = cuda.run("kernel:first:1000:1:3 sync:1", traps="broken=999")
    assert run.notices()[FAILED]["value"] == 999
    assert "cuptiSubscribe" in str(run.notices()[FAILED].name)


def test_a_cupti_that_is_too_old(cuda: CudaPrograms) -> None:
    """Its records are shorter than those that are read."""
    run = cuda.run("kernel:first:1000:1:3 sync:1", "11.8", "version=17")
    assert "older than CUDA 11.8" in str(run.notices()[NO_CUPTI].name)
    assert run.of("kernel") == []


def test_a_kind_that_is_refused_costs_the_others_nothing(cuda: CudaPrograms) -> None:
    run = cuda.run("kernel:first:1000:1:3 h2d:64:1 sync:1", traps="refuse-kind=2")
    assert "MEMSET" in str(run.notices()[FAILED].name)
    assert run.names("kernel") == {"first": 3}


class TestWindows:
    """Kinds that are on in windows only, and kinds that stay on."""

    words = "kernel:before:1000:1:3 start kernel:inside:1000:1:4 stop kernel:after:1000:1:5 start kernel:again:1000:1:6 stop sync:1"

    def kernels(
        self, cuda: CudaPrograms, version: str, flags: int, limit: int
    ) -> tuple[dict[str | None, int], bool]:
        """Kernels that were recorded, and whether the agent says that it went on between the windows."""
        capture = cuda.capture(flags=flags, open=False, trigger=PROFILER_API, window_limit=limit)
        run = cuda.run(self.words, version, capture=capture)
        return dict(run.names("kernel")), GATED in run.notices()

    @pytest.mark.parametrize("version", VERSIONS)
    def test_one_range(self, cuda: CudaPrograms, version: str) -> None:
        assert self.kernels(cuda, version, TRACE | TOGGLE, 1) == ({"inside": 4}, False)

    def test_ranges_that_may_come_again(self, cuda: CudaPrograms) -> None:
        """Early versions get launches of graphs wrong after a pause, so they stay on once they are."""
        assert self.kernels(cuda, "13.4", TRACE | TOGGLE, 0) == ({"inside": 4, "again": 6}, False)
        kernels, gated = self.kernels(cuda, "13.0", TRACE | TOGGLE, 0)
        assert gated
        # A flush may come between the record of a kernel and that of its call. The kernel is kept then, and the report leaves it out.
        assert kernels.pop("after", 0) <= 1
        assert kernels == {"inside": 4, "again": 6}

    def test_kinds_that_stay_on(self, cuda: CudaPrograms) -> None:
        kernels, gated = self.kernels(cuda, "13.0", TRACE, 0)
        assert gated
        assert kernels.items() >= {"inside": 4, "again": 6}.items()

    def test_the_driver_api_opens_them_too(self, cuda: CudaPrograms) -> None:
        capture = cuda.capture(flags=TRACE | TOGGLE, open=False, trigger=PROFILER_API, window_limit=1)
        run = cuda.run(f"driver {self.words}", capture=capture)
        assert run.names("kernel") == {"inside": 4}

    def test_a_launch_right_after_the_start_and_right_before_the_stop(self, cuda: CudaPrograms) -> None:
        capture = cuda.capture(flags=TRACE | TOGGLE, open=False, trigger=PROFILER_API, window_limit=1)
        run = cuda.run("kernel:warm:1000:1 start kernel:long:30000000:1 stop sync:1", capture=capture)
        assert run.names("kernel") == {"long": 1}  # though it ran on after the window closed
        (kernel,) = run.of("kernel")
        assert kernel["end"] - kernel["start"] == 30_000_000

    def test_windows_that_others_open(self, cuda: CudaPrograms) -> None:
        """By commands, in other processes: the agent sees the gate move, and does not look for it."""
        capture = cuda.capture(flags=TRACE | TOGGLE, flush_ms=1000, open=False)
        words = ["kernel:before:1000:1:2", "name:begun", *["kernel:inside:1000:1", "sleep:2"] * 150, "sync:1"]
        running = subprocess.Popen([cuda.program(), *words], env=cuda.environment(capture))
        try:
            while Path(f"/proc/{running.pid}/comm").read_text().strip() != "begun":
                assert running.poll() is None
            assert capture.open(COMMAND) == 1
            while len(written(capture.spool)) < 20:
                assert running.poll() is None
            assert capture.close(COMMAND) == 1
            assert running.wait(PATIENCE_S) == 0
        finally:
            running.kill()
        run = cuda.result(capture, subprocess.CompletedProcess([], 0))
        inside = run.names("kernel")["inside"]
        assert 0 < inside < 150
        assert run.names("kernel")["before"] == 0


def log_of(spool: Path) -> list[str]:
    """The lines of the fake's log so far."""
    path = spool / "log"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def written(spool: Path) -> list[str]:
    """What the program says it has done inside so far."""
    path = spool / "program"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line for line in lines if "inside" in line]
