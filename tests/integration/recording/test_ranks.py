"""Parallel jobs: one launcher around mpirun, or one in each rank; both give one report with ranks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.launching import COMMAND, environment, info, program, warplens
from tests.support.programs.under_everything import EVERYTHING
from tests.support.thorough import alike, few
from warplens.report import open as open_report

pytestmark = pytest.mark.require("native")

MPIRUN = {"openmpi": ("mpirun.openmpi", "--oversubscribe", "-n", "2"), "mpich": ("mpirun.mpich", "-n", "2")}
MPI = [pytest.param(name, marks=pytest.mark.require(name)) for name in MPIRUN]
# A range for each rank, closed before the rest of the program.
RANK = """
names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "PMIX_RANK", "RANK")
rank = next(int(os.environ[name]) for name in names if name in os.environ)
with nvtx.annotate(f"rank {rank}"):
    pass
"""
# They go on when all are here: so they end at the same moment.
MEET = """
open(f"there{rank}", "w").close()
while sum(os.path.exists(f"there{number}") for number in range(COUNT)) < COUNT:
    time.sleep(0.001)
"""


def mpi_environment() -> dict[str, str]:
    """Open MPI refuses to run as root, and looks for ssh, unless told otherwise."""
    kept = {
        name: value for name, value in environment().items() if not name.startswith(("PMI", "MPI", "HYD"))
    }
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**kept, **root, "OMPI_MCA_plm": "isolated", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = list(map(str, words))
    return subprocess.run(
        command, cwd=cwd, env=mpi_environment(), text=True, capture_output=True, check=False, timeout=120
    )


def by_rank(report: Path) -> dict[int, dict[str, Any]]:
    """The processes that recorded, by rank."""
    return {row["rank"]: row for row in info(report)["processes"] if row["recorded"]}


def messages(report: Path) -> list[str]:
    with open_report(report) as opened:
        found: list[str] = opened.table("nvtx_ranges", ["message"]).column("message").to_pylist()
        return found


@pytest.mark.parametrize("mpi", MPI)
def test_one_launcher_around_mpirun(mpi: str, tmp_path: Path) -> None:
    result = run(
        *COMMAND,
        "profile",
        "--light",
        "-o",
        "x",
        *MPIRUN[mpi],
        program(tmp_path / "rank.py", RANK),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    processes = info(tmp_path / "x.warplens")["processes"]
    ranks = by_rank(tmp_path / "x.warplens")
    assert {rank: (row["name"], row["local_rank"], row["exit_status"]) for rank, row in ranks.items()} == {
        0: ("rank.py", 0, 0),
        1: ("rank.py", 1, 0),
    }
    (primary,) = (row for row in processes if row["primary"])
    assert (primary["name"], primary["recorded"], primary["rank"], primary["exit_status"]) == (
        MPIRUN[mpi][0],
        False,
        None,
        0,
    )
    by_key = {row["process"]: row for row in processes}
    for row in ranks.values():
        assert row["host"] == primary["host"]
        at = row
        while at["parent"] is not None:
            at = by_key[at["parent"]]
        assert at is primary  # MPICH has its proxy in between
    assert sorted(text for text in messages(tmp_path / "x.warplens") if text.startswith("rank")) == [
        "rank 0",
        "rank 1",
    ]


# Waits in the C library, imports, collects, and computes, in each rank.
BUSY = """
import gc, json, threading
def compute():
    return sum(number * number % 7 for number in range(200_000))
thread = threading.Thread(target=compute)
thread.start()
compute()
thread.join()
time.sleep(0.02)
gc.collect()
print("rank", rank, compute())
"""


@pytest.mark.parametrize("mpi", few(MPI))
@pytest.mark.parametrize("around", alike([True, False], True), ids=["around mpirun", "in each rank"])
def test_the_cpu_side_of_ranks(around: bool, mpi: str, tmp_path: Path) -> None:
    script = program(tmp_path / "rank.py", RANK + BUSY)
    profile = (*COMMAND, "profile", "--light", "-q", "-o", "x", *EVERYTHING)
    bare = run(*MPIRUN[mpi], script, cwd=tmp_path)
    words: tuple[str | Path, ...] = (
        (*profile, *MPIRUN[mpi], script) if around else (*MPIRUN[mpi], *profile, script)
    )
    result = run(*words, cwd=tmp_path)
    assert (result.returncode, sorted(result.stdout.splitlines())) == (0, sorted(bare.stdout.splitlines())), (
        result.stderr
    )
    ranks = by_rank(tmp_path / "x.warplens")
    assert ranks.keys() >= {0, 1}
    with open_report(tmp_path / "x.warplens") as opened:
        for table, what in {
            "osrt": "t.name LIKE '%sleep%'",
            "gc": "true",
            "imports": "t.name = 'json'",
            "samples": "true",
            "gil": "true",
        }.items():
            asking = f"SELECT DISTINCT p.rank FROM {table} t JOIN processes p USING (process) WHERE {what} AND p.rank IS NOT NULL"
            assert {row["rank"] for row in opened.sql(asking).to_pylist()} == {0, 1}, table


@pytest.mark.parametrize("mpi", few(MPI))
def test_a_launcher_in_each_rank(mpi: str, tmp_path: Path) -> None:
    script = program(tmp_path / "rank.py", RANK)
    warplens("profile", "-q", "-o", "x", "true", cwd=tmp_path)
    result = run(*MPIRUN[mpi], *COMMAND, "profile", "--light", "-f", "-o", "x", script, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Warning" not in result.stderr
    found = info(tmp_path / "x.warplens")
    assert len(found["parts"]) == 2  # nothing is left of the old report
    assert len({part["job"] for part in found["parts"]}) == 1
    assert {
        rank: (row["local_rank"], row["primary"]) for rank, row in by_rank(tmp_path / "x.warplens").items()
    } == {
        0: (0, True),
        1: (1, True),
    }
    assert sorted(text for text in messages(tmp_path / "x.warplens") if text.startswith("rank")) == [
        "rank 0",
        "rank 1",
    ]

    again = run(*MPIRUN[mpi], *COMMAND, "profile", "--light", "-o", "x", script, cwd=tmp_path)
    assert again.returncode != 0
    assert "It is not of this job" in again.stderr
    assert len(info(tmp_path / "x.warplens")["parts"]) == 2


@pytest.mark.parametrize("mpi", few(MPI))
def test_a_rank_is_killed(mpi: str, tmp_path: Path) -> None:
    kill = "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\n"
    result = run(
        *COMMAND,
        "profile",
        "--light",
        "-o",
        "x",
        *MPIRUN[mpi],
        program(tmp_path / "rank.py", RANK + MEET.replace("COUNT", "2") + kill),
        cwd=tmp_path,
    )
    assert result.returncode != 0
    ranks = by_rank(tmp_path / "x.warplens")
    assert (ranks[1]["ended"], ranks[1]["exit_status"]) == ("signal", 137)
    assert sorted(text for text in messages(tmp_path / "x.warplens") if text.startswith("rank")) == [
        "rank 0",
        "rank 1",
    ]


@pytest.mark.parametrize("mpi", MPI)
def test_the_launcher_of_a_rank_is_killed(mpi: str, tmp_path: Path) -> None:
    kill = "if rank == 1: os.kill(os.getppid(), signal.SIGKILL)\n"
    run(
        *MPIRUN[mpi],
        *COMMAND,
        "profile",
        "--light",
        "-o",
        "x",
        program(tmp_path / "rank.py", RANK + MEET.replace("COUNT", "2") + kill),
        cwd=tmp_path,
    )
    found = info(tmp_path / "x.warplens")  # finishes what is not
    assert len(found["parts"]) == 2
    assert sorted(text for text in messages(tmp_path / "x.warplens") if text.startswith("rank")) == [
        "rank 0",
        "rank 1",
    ]


def together(
    variables: Sequence[Mapping[str, str]], *words: str | Path, cwd: Path
) -> list[subprocess.CompletedProcess[str]]:
    """Run several launchers at once, each with its own variables."""
    running = []
    for extra in variables:
        env = environment(**extra)
        command = [*COMMAND, *map(str, words)]
        running.append(
            subprocess.Popen(
                command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    found = []
    for one in running:
        out, err = one.communicate(timeout=120)
        found.append(subprocess.CompletedProcess(one.args, one.returncode, out, err))
    return found


JOBS = {
    "slurm": ({"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "3"}, "SLURM_PROCID", "SLURM_LOCALID"),
    "torchrun": (
        {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"},
        "RANK",
        "LOCAL_RANK",
    ),
    "pmix": ({"PMIX_NAMESPACE": "job@1"}, "PMIX_RANK", ""),
}


@pytest.mark.parametrize("job", few(JOBS))
def test_ranks_that_meet_in_one_report_and_end_together(job: str, tmp_path: Path) -> None:
    common, rank, local = JOBS[job]
    script = program(tmp_path / "rank.py", RANK + MEET.replace("COUNT", "3"))
    ranks = [
        {**common, rank: str(number), **({local: str(number % 2)} if local else {})} for number in range(3)
    ]
    for result in together(ranks, "profile", "--light", "-o", "x", script, cwd=tmp_path):
        assert result.returncode == 0, result.stderr
    found = by_rank(tmp_path / "x.warplens")
    assert {number: row["local_rank"] for number, row in found.items()} == {
        number: number % 2 if local else None for number in range(3)
    }
    parts = info(tmp_path / "x.warplens")["parts"]
    assert sorted(part["part"] for part in parts) == [0, 1, 2]
    assert not (tmp_path / "x.warplens" / "pending.d").exists()
    assert sorted(text for text in messages(tmp_path / "x.warplens") if text.startswith("rank")) == [
        "rank 0",
        "rank 1",
        "rank 2",
    ]


def test_launchers_of_no_job_do_not_mix(tmp_path: Path) -> None:
    """Whoever is refused says so; whoever is not has a whole report of its own, unless a later one was asked to overwrite it."""
    for number in range(2):
        results = together(
            [{"RACER": str(racer)} for racer in range(3)],
            "profile",
            "--light",
            "-f",
            "-o",
            "x",
            sys.executable,
            "-c",
            RACE,
            cwd=tmp_path,
        )
        assert any(result.returncode == 0 for result in results), number
        for result in results:
            assert result.returncode == 0 or "is still being written by process" in result.stderr, (
                result.stderr
            )
        won = {f"racer {racer}" for racer, result in enumerate(results) if result.returncode == 0}
        assert len(info(tmp_path / "x.warplens")["parts"]) == 1
        (name,) = messages(tmp_path / "x.warplens")
        assert name in won
        assert [path.name for path in tmp_path.iterdir()] == ["x.warplens"]  # and nothing of the old ones


RACE = """
import os
from warplens import nvtx
with nvtx.annotate(f"racer {os.environ['RACER']}"):
    pass
"""
