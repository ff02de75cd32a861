"""Finds the parallel job of this process, so that its ranks finish into one report."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK")
RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK")


_PROXY = re.compile(r"hydra_\w*proxy")
_MOST_ANCESTORS = 16


def job_id(environment: Mapping[str, str] | None = None, parent: int | None = None) -> str | None:
    """Return a text that is equal in all ranks of one job step and differs between steps.

    None outside of jobs.

    A batch script or an allocation alone is no step: two programs started one after the other in it do not belong
    together, so `SLURM_JOB_ID` counts only with `SLURM_STEP_ID`. MPICH's mpirun sets no variable that names the job:
    `parent` is the process (by default ours) above which its proxy is looked for.
    """
    environ = os.environ if environment is None else environment
    parts = []
    if namespace := environ.get("PMIX_NAMESPACE"):
        # mpirun numbers its jobs per daemon: the server's address tells two mpiruns of one host apart
        server = environ.get("OMPI_MCA_orte_hnp_uri") or environ.get("SLURM_JOB_ID") or ""
        parts.append("pmix:" + "@".join(filter(None, (namespace, server.split(";")[0]))))
    elif (job := environ.get("SLURM_JOB_ID")) and (step := environ.get("SLURM_STEP_ID")):
        parts.append(f"slurm:{job}.{step}")
    elif job := environ.get("OMPI_MCA_ess_base_jobid") or environ.get("OMPI_MCA_orte_ess_jobid"):
        parts.append(f"ompi:{job}")
    elif job := environ.get("PMI_JOBID") or environ.get("PMI_ID_SPACE"):
        parts.append(f"pmi:{job}")
    elif environ.get("PMI_FD") and (run := _hydra(parent)):
        parts.append(f"hydra:{run}")
    if "TORCHELASTIC_RUN_ID" in environ:
        # torchrun's default run id is the word "none": only its rendezvous address tells such runs apart
        run = environ["TORCHELASTIC_RUN_ID"]
        address = f"{environ.get('MASTER_ADDR', '')}:{environ.get('MASTER_PORT', '')}"
        parts.append("torchelastic:" + (address if run == "none" else run))
    return " ".join(parts) or None


def _hydra(parent: int | None) -> str | None:
    """Return the name of one run of MPICH's mpirun.

    On each host its proxy knows where mpirun listens.
    """
    pid = os.getppid() if parent is None else parent
    for _ in range(_MOST_ANCESTORS):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            above = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
        if _PROXY.fullmatch(words[0].rpartition("/")[2]):
            given = dict(pairwise(words))
            port = given.get("--control-port")
            return f"{port}/{given.get('--pgid', '0')}" if port else None
        pid = above
    return None


def rank(environment: Mapping[str, str] | None = None) -> int | None:
    """Return the global rank of this process as the launchers of parallel jobs announce it, else None."""
    environ = os.environ if environment is None else environment
    for name in RANK:
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return None


def is_later_local_rank(environment: Mapping[str, str] | None = None) -> bool:
    """Say whether this process is a rank of a job, and not the first one of its host."""
    environ = os.environ if environment is None else environment
    ranks = [int(environ[name]) for name in LOCAL_RANK if environ.get(name, "").isdigit()]
    return job_id(environ) is not None and bool(ranks) and max(ranks) > 0
