"""A Dask cluster gives the answer of the processes here, also where a worker is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.gpu_ranks import ranks
from warplens.errors import UsageError
from warplens.recipes import engine
from warplens.recipes.base import Answer
from warplens.recipes.dask_pool import DaskPool
from warplens.recipes.engine import Pool
from warplens.recipes.process_pool import ProcessPool

pytestmark = [pytest.mark.require("dask"), pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Dask sets variables for its workers."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def answered(paths: list[Path], pool: Pool) -> Answer:
    answer, broken = engine.run("sums", paths, pool, options={"stat": "cuda_gpu_kern_sum", "column": ""})
    assert not broken
    return answer


def same(answer: Answer, other: Answer) -> bool:
    return answer.facts == other.facts and all(
        answer.tables[name].equals(table) for name, table in other.tables.items()
    )


def test_a_local_cluster_gives_the_same_answer(tmp_path: Path) -> None:
    paths = ranks(tmp_path, range(4))
    assert same(answered(paths, DaskPool("local:2")), answered(paths, ProcessPool(1)))


def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    import distributed

    paths = ranks(tmp_path, range(12))
    expected = answered(paths, ProcessPool(1))
    make: Any = distributed.LocalCluster
    with make(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        nannies = list(cluster.workers.values())

        def kill() -> None:
            time.sleep(0.2)
            os.kill(nannies[0].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        answer = answered(paths, DaskPool(cluster.scheduler_address))
        killer.join()
    assert same(answer, expected)


def test_a_scheduler_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warplens.recipes.dask_pool._CONNECT_S", 1)
    with pytest.raises(UsageError, match="does not answer"):
        list(DaskPool("tcp://127.0.0.1:1").run([]))
