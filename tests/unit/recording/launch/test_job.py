"""The job id is equal in the ranks of one job step, and differs between steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warplens.recording.launch.job import is_later_local_rank, job_id, rank


def test_no_job() -> None:
    assert job_id({"PATH": "/bin"}) is None
    assert rank({"PATH": "/bin"}) is None


def test_an_allocation_alone_is_no_job_step() -> None:
    assert job_id({"SLURM_JOB_ID": "12", "SLURM_PROCID": "0"}) is None


def test_slurm_ranks_of_a_step_agree_and_steps_differ() -> None:
    step = {"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "3"}
    ids = {
        job_id({**step, "SLURM_PROCID": str(number), "SLURM_LOCALID": str(number % 2)}) for number in range(4)
    }
    assert ids == {"slurm:12.3"}
    assert job_id({**step, "SLURM_STEP_ID": "4"}) not in ids


def test_mpirun_ranks_agree_whatever_node_they_are_on() -> None:
    job = {"PMIX_NAMESPACE": "prterun-node1-77@1", "OMPI_COMM_WORLD_SIZE": "2"}
    assert job_id({**job, "OMPI_COMM_WORLD_RANK": "0"}) == job_id(
        {**job, "OMPI_COMM_WORLD_RANK": "1", "SLURM_STEP_ID": "9"}
    )
    assert job_id(job) != job_id({"PMIX_NAMESPACE": "prterun-node1-78@1"})


def test_torchrun_without_a_run_id_is_told_by_its_address() -> None:
    first = {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "n1", "MASTER_PORT": "29500"}
    assert job_id({**first, "RANK": "0"}) == job_id({**first, "RANK": "7"})
    assert job_id(first) != job_id({**first, "MASTER_PORT": "29501"})
    assert job_id({**first, "TORCHELASTIC_RUN_ID": "mine"}) == "torchelastic:mine"


def test_two_torchruns_of_one_slurm_step_differ() -> None:
    step = {"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"}
    assert job_id({**step, "TORCHELASTIC_RUN_ID": "a"}) != job_id({**step, "TORCHELASTIC_RUN_ID": "b"})


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"])
def test_rank(name: str) -> None:
    assert rank({name: "5"}) == 5
    assert rank({name: ""}) is None


def test_mpi_rank_wins_over_slurms() -> None:
    assert rank({"SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "3"}) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_mpich_is_told_by_its_proxy(tmp_path: Path) -> None:
    proxy = tmp_path / "hydra_pmi_proxy"
    proxy.symlink_to("/bin/sh")

    def job(port: str) -> str | None:
        # the rank is a shell, as of a script that runs the launcher; both end with their input
        script = [str(proxy), "-c", "sh -c 'echo $$; read x'; true", "--control-port", port, "--pgid", "0"]
        with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            return job_id({"PMI_FD": "6"}, parent=int(running.stdout.readline()))

    assert job("node1:4001") == "hydra:node1:4001/0"
    assert job("node1:4001") != job("node1:4002")
    assert job_id({"PMI_FD": "6"}, parent=1) is None
    assert job_id({}, parent=1) is None


@pytest.mark.parametrize(
    ("environment", "later"),
    [
        ({}, False),
        ({"LOCAL_RANK": "1"}, False),  # of no job: it has a report of its own
        ({"LOCAL_RANK": "0", "TORCHELASTIC_RUN_ID": "x"}, False),
        ({"LOCAL_RANK": "3", "TORCHELASTIC_RUN_ID": "x"}, True),
        ({"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0", "SLURM_LOCALID": "2"}, True),
        ({"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0", "SLURM_LOCALID": "many"}, False),
        ({"OMPI_MCA_ess_base_jobid": "7", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, True),
    ],
)
def test_the_first_rank_of_a_host_is_told_from_the_others(environment: dict[str, str], later: bool) -> None:
    assert is_later_local_rank(environment) == later
