"""Which job this process belongs to, so that the ranks of one job finish into one report."""

from __future__ import annotations

import os
from collections.abc import Mapping

RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK")


def job_id(environment: Mapping[str, str] | None = None) -> str | None:
    """Return a text that is equal in all ranks of one job step and differs between steps; None outside of jobs.

    A batch script or an allocation alone is no step: two programs started one after the other in it do not belong
    together, so `SLURM_JOB_ID` counts only with `SLURM_STEP_ID`.
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
    if "TORCHELASTIC_RUN_ID" in environ:
        # torchrun's default run id is the word "none": only its rendezvous address tells such runs apart
        run = environ["TORCHELASTIC_RUN_ID"]
        address = f"{environ.get('MASTER_ADDR', '')}:{environ.get('MASTER_PORT', '')}"
        parts.append("torchelastic:" + (address if run == "none" else run))
    return " ".join(parts) or None


def rank(environment: Mapping[str, str] | None = None) -> int | None:
    """Return the global rank of this process as the launchers of parallel jobs announce it, else None."""
    environ = os.environ if environment is None else environment
    for name in RANK:
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return None
