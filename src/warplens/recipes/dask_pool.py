"""Computes parts on a cluster of dask.distributed.

Reports must be readable under the same paths on every worker, as on a shared file system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from warplens.errors import UsageError
from warplens.recipes.engine import PartTask, Result, compute
from warplens.recipes.process_pool import TRIES

_CONNECT_S = 30


class DaskPool:
    """The workers of a scheduler: `tcp://HOST:PORT`, `local:N` for N processes here, or a scheduler file.

    Raises UsageError if dask.distributed is not installed or the scheduler does not answer.
    """

    def __init__(self, address: str | None = None, *, scheduler_file: str | None = None) -> None:
        self._address, self._scheduler_file = address, scheduler_file

    def run(self, work: Sequence[PartTask]) -> Iterator[Result]:
        """Compute all parts. Dask computes those of a lost worker again; a part that loses three is broken."""
        distributed = _distributed()
        with self._client(distributed) as client:
            parts = {
                client.submit(compute, part, pure=False, key=f"warplens-{id(work)}-{part.number}"): part
                for part in work
            }
            for future in distributed.as_completed(parts):
                error = future.exception()
                part = parts[future]
                if isinstance(error, distributed.scheduler.KilledWorker):
                    text = f"{part.path}: the worker ended {TRIES} times while it read this"
                    yield Result(part.number, None, error=text)
                elif error is not None:
                    raise error
                else:
                    yield future.result()
                future.release()

    def _client(self, distributed: Any) -> Any:
        name, _, count = (self._address or "").partition(":")
        try:
            if name == "local":
                jobs = int(count) if count else None
                cluster = distributed.LocalCluster(
                    n_workers=jobs, threads_per_worker=1, dashboard_address=":0"
                )
                return distributed.Client(cluster, timeout=_CONNECT_S)
            if self._scheduler_file is not None:
                return distributed.Client(scheduler_file=self._scheduler_file, timeout=_CONNECT_S)
            return distributed.Client(self._address, timeout=_CONNECT_S)
        except (OSError, ValueError, TimeoutError) as error:
            where = self._scheduler_file or self._address
            raise UsageError(
                f"the Dask scheduler {where} does not answer: {error}.\n"
                "Use --dask tcp://HOST:PORT, --dask local:N or --dask-scheduler-file FILE."
            ) from error


def _distributed() -> Any:
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--dask needs {error.name}, which is not installed: pip install distributed"
        ) from error
    # A worker that is lost with a part may be chance; three are not.
    import dask

    dask.config.set({"distributed.scheduler.allowed-failures": TRIES - 1})
    return distributed
