"""Kernels that time themselves, under `warplens profile` on the look-alike CUDA: their regions lie inside their kernels in the report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.native.fake_cuda import FakeCuda, violations
from tests.support.optional_dependencies import ROOT
from tests.support.programs.launching import COMMAND, environment, warplens
from tests.support.thorough import few
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("gcc", "native"), pytest.mark.timeout(300)]

PROGRAM = ROOT / "tests" / "targets" / "intrakernel" / "intrakernel_program.py"
EPOCH = 3_000_000_000_000_000  # of the look-alike's GPU
TABLES = (
    "intrakernel_launches",
    "intrakernel_units",
    "intrakernel_events",
    "kernels",
    "memcpys",
    "cuda_api",
    "threads",
    "diagnostics",
    "processes",
)
Rows = list[dict[str, Any]]


class Run:
    """A recording of the program, and the tables of its report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tables: dict[str, Rows] = {}
        self.code = 0

    def __call__(
        self, *steps: str, options: tuple[str, ...] = (), cuda: str = "cuda,nvtx", traps: str = ""
    ) -> Run:
        fake = FakeCuda()
        log = self.folder / "log"
        variables = fake.environment(traps=traps, log=log, truth=self.folder / "truth")
        env = environment(**variables, FAKE_CUDA_BACKED="1", WARPLENS_CUPTI=str(fake.cupti))
        words = (
            "-q",
            "-f",
            "-o",
            "x",
            f"--trace={cuda}",
            "--stats=false",
            *options,
            sys.executable,
            str(PROGRAM),
            *steps,
        )
        done = warplens("profile", *words, cwd=self.folder, env=env)
        self.code = done.returncode
        assert "Traceback" not in done.stderr, done.stderr
        assert violations(log) == []
        self.read(self.folder / "x.warplens")
        return self

    def read(self, report: Path) -> None:
        with open_report(report) as opened:
            self.tables = {name: opened.table(name).to_pylist() for name in TABLES}

    def __getitem__(self, table: str) -> Rows:
        return self.tables[table]

    @property
    def launches(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {row["name"]: row for row in self["intrakernel_launches"]}

    @property
    def codes(self) -> dict[str, str]:
        """Messages of the diagnostics by their codes."""
        return {row["code"]: row["message"] for row in self["diagnostics"]}

    def assert_inside(self, count: int, units: int = 4, events: int = 12) -> None:
        """So many launches are matched with kernels, and everything in them lies inside."""
        kernels = {row["id"]: row for row in self["kernels"]}
        launches = {row["id"]: row for row in self["intrakernel_launches"] if row["kernel"] is not None}
        assert len(launches) == count
        for launch in launches.values():
            kernel = kernels[launch["kernel"]]
            assert kernel["name"] == f"{launch['name']}_kernel"
            assert (launch["merged"], launch["stored"], launch["units"], launch["events"]) == (
                "kernel",
                True,
                units,
                events,
            )
            assert (launch["correlation"], launch["api"], launch["stream"]) == tuple(
                kernel[name] for name in ("correlation", "api", "stream")
            )
            assert kernel["start"] <= launch["start"] < launch["end"] <= kernel["end"]
            # A timer that ticks every 32 ns, CUPTI's noise, and a counter that is tied to the clock to some microseconds.
            assert abs(launch["offset"] + EPOCH) <= launch["uncertainty"] + 100_000
            assert launch["start"] - launch["uncertainty"] <= kernel["start"] + 2_000
        for table, inner in (("intrakernel_units", units), ("intrakernel_events", events)):
            mine = [row for row in self[table] if row["launch"] in launches]
            assert len(mine) == inner * count
            for row in mine:
                kernel = kernels[launches[row["launch"]]["kernel"]]
                assert kernel["start"] <= row["start"] <= row["end"] <= kernel["end"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_regions_lie_inside_their_kernels(run: Run) -> None:
    """Other kernels before and between them do not count, and a kernel that is too short for what was recorded is passed over."""
    run("busy:other", "launch:gemm", "busy:other", "fill:conv", "many:6")
    run.assert_inside(8)
    assert [row["tag"] for row in run["intrakernel_events"][:3]] == ["load", "mma", "store"]
    assert {(row["kind"], row["payload"]) for row in run["intrakernel_events"]} == {
        ("region", 0),
        ("region", 1),
        ("region", 2),
    }
    assert {row["generation"] for row in run["intrakernel_launches"]} == {1, 2, 3, 4, 5, 6}
    assert {row["buffer_name"] for row in run["intrakernel_launches"]} == {"device buffer"}
    assert {
        (row["mode"], row["clock"], row["slots"], row["device"]) for row in run["intrakernel_launches"]
    } == {("slices", "globaltimer", 8, 0)}
    assert [row["cta"] for row in run["intrakernel_units"][:4]] == [0, 1, 2, 3]
    assert "intrakernel-merged" in run.codes
    # What the agent did to read the buffers is not taken for work of the program.
    assert {row["kind"] for row in run["memcpys"]} <= {"Host-to-Device"}
    assert [row["name"] for row in run["cuda_api"] if "MemcpyDtoH" in row["name"]] == []


def test_threads(run: Run) -> None:
    run("threads:3")
    run.assert_inside(9)
    assert len({row["thread"] for row in run["intrakernel_launches"]}) == 3


def test_without_kernel_records_the_host_brackets(run: Run) -> None:
    run("launch:gemm", "host:interpreted:realtime", cuda="nvtx")
    assert {row["merged"] for row in run["intrakernel_launches"]} == {"bracket"}
    said = [row["message"] for row in run["diagnostics"] if row["code"] == "intrakernel-bracketed"]
    assert ["no kernels were recorded" in said[0], "they ran on the CPU" in said[1]] == [True, True]
    for launch in run["intrakernel_launches"]:
        assert launch["launched"] <= launch["start"] < launch["end"]
        assert (launch["units"], launch["events"], launch["kernel"]) == (4, 12, None)
    assert abs(run.launches["gemm"]["offset"] + EPOCH) <= run.launches["gemm"]["uncertainty"] + 100_000


def test_memory_of_the_host_beside_a_device(run: Run) -> None:
    run("launch:gemm", "host:interpreted")
    run.assert_inside(1)
    interpreted = run.launches["interpreted"]
    assert (interpreted["merged"], interpreted["device"], interpreted["offset"]) == ("host", None, 0)
    assert interpreted["launched"] <= interpreted["start"] + interpreted["uncertainty"]


@pytest.mark.parametrize(
    "steps", [("launch:gemm", "graph:replayed"), ("graph:replayed:3",)], ids=["clock known", "graph alone"]
)
def test_a_captured_launch_runs_with_its_graph(run: Run, steps: tuple[str, ...]) -> None:
    """It is the last run of its node, although other kernels of the graph, and of the thread, are beside it."""
    run(*steps)
    assert run.code == 0
    rows = [row for row in run["intrakernel_launches"] if row["name"] == "replayed"]
    kernels = [row for row in run["kernels"] if row["name"] == "replayed1_kernel"]
    assert [(row["stored"], row["events"], row["kernel"]) for row in rows] == [
        (False, 0, None),
        (True, 12, kernels[-1]["id"]),
    ]
    assert (rows[1]["merged"], rows[1]["correlation"]) == ("kernel", kernels[-1]["correlation"])
    assert kernels[-1]["start"] <= rows[1]["start"] < rows[1]["end"] <= kernels[-1]["end"]
    assert all(row["merged"] == "kernel" for row in run["intrakernel_launches"] if row["stored"])


def test_notes_around_replays_of_a_graph(run: Run) -> None:
    run("replay:step:4", "launch:gemm")
    kernels = [row for row in run["kernels"] if row["name"] == "step_kernel"]
    rows = [row for row in run["intrakernel_launches"] if row["name"] == "step"]
    assert [row["kernel"] for row in rows] == [row["id"] for row in kernels]
    assert len({row["correlation"] for row in rows}) == 4
    run.assert_inside(5)


def test_dropped_records_are_counted(run: Run) -> None:
    run("drop")
    launch = run.launches["drop"]
    assert (launch["events"], launch["dropped"], launch["needed_slots"]) == (32, 48, 20)
    assert "slots=20" in run.codes["intrakernel-dropped"]


@pytest.mark.parametrize(
    ("step", "code"),
    few(
        [
            ("free", "intrakernel-unreadable"),
            ("garbage", "intrakernel-no-buffer"),
            ("gone", "intrakernel-unreadable"),
            ("bad", "intrakernel-unreadable"),
        ],
        2,
    ),
)
def test_memory_that_is_not_there_harms_nobody(run: Run, step: str, code: str) -> None:
    run("launch:gemm", step)
    assert run.code == 0
    assert code in run.codes
    lost = run.launches[step]
    assert (lost["stored"], lost["units"], lost["start"], lost["merged"]) == (
        False,
        0,
        lost["launched"],
        None,
    )
    assert run.launches["gemm"]["events"] == 12


def test_a_killed_program_keeps_what_was_stored(run: Run) -> None:
    run("many:3", "kill")
    assert run.code != 0
    stored = [row["stored"] for row in run["intrakernel_launches"]]
    assert stored == [True, True, False]
    assert "1 in-kernel launch of process" in run.codes["intrakernel-not-read"]


def test_a_fork_child_leaves_device_memory_alone(run: Run) -> None:
    run("launch:gemm", "fork", "host:child")
    assert run.code == 0
    assert len(run["intrakernel_launches"]) == 2
    assert run.launches["child"]["process"] != run.launches["gemm"]["process"]
    assert (run.launches["child"]["events"], run.launches["gemm"]["events"]) == (12, 12)


def test_a_capture_range_chooses_launches(run: Run) -> None:
    run("launch:before", "start", "launch:inside", "stop", "launch:after", options=("-c", "cudaProfilerApi"))
    assert set(run.launches) == {"inside"}
    run.assert_inside(1)


def test_memory_that_belongs_to_no_context(run: Run) -> None:
    """As in pools: where the thread that reads it when the window closes, often our own, has no context either."""
    run(
        "launch:before",
        "start",
        "launch:inside",
        "stop_elsewhere",
        "launch:after",
        options=("-c", "cudaProfilerApi"),
        traps="pooled",
    )
    run.assert_inside(1)


def test_a_full_disk_loses_records_and_says_so(run: Run) -> None:
    run("many:500", options=("--max-size", "1M"))
    assert run.code == 0
    said = run.codes
    assert "intrakernel-no-space" in said or "dropped-records" in said
    assert any(row["stored"] for row in run["intrakernel_launches"])


def test_ranks_in_one_report(tmp_path: Path) -> None:
    """Two launchers of one job: what each rank's kernels recorded lies inside the kernels of that rank."""
    fake = FakeCuda()
    running = []
    for rank in range(2):
        log, truth = tmp_path / f"log{rank}", tmp_path / f"truth{rank}"
        job = {
            "SLURM_JOB_ID": "12",
            "SLURM_STEP_ID": "3",
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank),
        }
        backed = {"FAKE_CUDA_BACKED": "1", "WARPLENS_CUPTI": str(fake.cupti)}
        env = environment(**fake.environment(log=log, truth=truth), **job, **backed)
        command = [
            *COMMAND,
            "profile",
            "--light",
            "-q",
            "-o",
            "x",
            "--trace=cuda,nvtx",
            "--stats=false",
            sys.executable,
            str(PROGRAM),
        ]
        steps = ("many:3", "graph:replayed") if rank == 0 else ("launch:gemm",)
        running.append(
            subprocess.Popen([*command, *steps], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
        )
    for one in running:
        _, said = one.communicate(timeout=240)
        assert one.returncode == 0, said
    run = Run(tmp_path)
    run.read(tmp_path / "x.warplens")
    rank_of = {row["process"]: row["rank"] for row in run["processes"] if row["recorded"]}
    stored = [row for row in run["intrakernel_launches"] if row["stored"]]
    assert sorted((rank_of[row["process"]], row["name"]) for row in stored) == [
        *((0, name) for name in ("replayed", "step0", "step1", "step2")),
        (1, "gemm"),
    ]
    kernels = {row["id"]: row for row in run["kernels"]}
    for row in stored:
        kernel = kernels[row["kernel"]]
        assert kernel["process"] == row["process"]
        assert kernel["name"] == (
            "replayed1_kernel" if row["name"] == "replayed" else f"{row['name']}_kernel"
        )
        assert kernel["start"] <= row["start"] < row["end"] <= kernel["end"]
    launches = {row["id"]: row for row in stored}
    assert len(launches) == 5
    assert {launches[row["launch"]]["process"] == row["process"] for row in run["intrakernel_events"]} == {
        True
    }


def test_in_process_recording(tmp_path: Path) -> None:
    """`warplens.record()` around some of the launches."""
    (tmp_path / "program.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {os.fspath(PROGRAM.parent)!r})\n"
        "import warplens\n"
        "import intrakernel_program as program\n"
        "program.start()\n"
        "buffer = program.on_device()\n"
        "program.launch(buffer, 'before')\n"
        "for number in range(2):\n"
        "    with warplens.record(f'r{number}.warplens', wait=True):\n"
        "        program.launch(buffer, f'in{number}')\n"
        "        program.on_host('host')\n"
        "program.launch(buffer, 'after')\n",
        encoding="utf-8",
    )
    fake = FakeCuda()
    variables = fake.environment(log=tmp_path / "log", truth=tmp_path / "truth")
    env = environment(**variables, FAKE_CUDA_BACKED="1", WARPLENS_CUPTI=str(fake.cupti))
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for number in range(2):
        run = Run(tmp_path)
        run.read(tmp_path / f"r{number}.warplens")
        assert {(row["name"], row["events"]) for row in run["intrakernel_launches"]} == {
            (f"in{number}", 12),
            ("host", 12),
        }
