"""Reports in object storage give the answer of those on disk; a report that was read before is not copied again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from warplens.cli.commands.recipe import expanded
from warplens.errors import UsageError
from warplens.recipes import engine, remote
from warplens.recipes.base import Answer, Place
from warplens.recipes.process_pool import ProcessPool
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.require("fsspec")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def bucket() -> Iterator[str]:
    """A folder of an object storage in this process."""
    import fsspec

    yield "memory://bucket/ranks"
    fsspec.filesystem("memory").rm("/bucket", recursive=True)


def ranks(folder: Path, count: int = 3) -> list[Place]:
    paths: list[Place] = [folder / f"rank{rank}.warplens" for rank in [*range(count - 1), 10]]
    for rank, path in enumerate(paths):
        timeline(Path(path), f"main |[{'work'.ljust(4 + rank)}]", part=f"host-{rank}-1")
    return paths


def put(paths: list[Place], url: str) -> Any:
    import fsspec

    storage, root = fsspec.core.url_to_fs(url)
    for path in map(Path, map(str, paths)):
        for file in path.rglob("*"):
            if file.is_file():
                storage.pipe_file(f"{root}/{path.name}/{file.relative_to(path)}", file.read_bytes())
    return storage


def answered(paths: list[Place], jobs: int = 1) -> Answer:
    answer, broken = engine.run("sums", paths, ProcessPool(jobs), options={"stat": "nvtx_sum"})
    assert not broken
    return answer


def same(answer: Answer, other: Answer) -> bool:
    return answer.facts == other.facts and all(
        table.equals(other.tables[name]) for name, table in answer.tables.items()
    )


def test_a_folder_of_objects_gives_the_answer_of_the_disk(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ranks(tmp_path)
    storage = put(paths, bucket)
    places = expanded((bucket + "/",))
    assert places == [f"{bucket}/rank{rank}.warplens" for rank in (0, 1, 10)]
    first = answered(places)
    assert same(first, answered(paths))
    monkeypatch.setattr(type(storage), "get_file", lambda *_, **__: pytest.fail("a copy was made"))
    assert same(answered(places), first)


def test_an_object_that_changed_is_read_again(tmp_path: Path, bucket: str) -> None:
    storage = put(ranks(tmp_path), bucket)
    before = answered([f"{bucket}/rank0.warplens"])
    storage.rm("/bucket/ranks/rank0.warplens", recursive=True)
    timeline(tmp_path / "new" / "rank0.warplens", f"main |[{'work'.ljust(40)}]")
    put([tmp_path / "new" / "rank0.warplens"], bucket)
    assert not same(answered([f"{bucket}/rank0.warplens"]), before)


def test_what_is_not_there_is_named_and_left_out(tmp_path: Path, bucket: str) -> None:
    put(ranks(tmp_path), bucket)
    places: list[Place] = [f"{bucket}/rank0.warplens", f"{bucket}/none.warplens"]
    answer, broken = engine.run("sums", places, ProcessPool(1), options={"stat": "nvtx_sum"})
    assert answer.facts["reports"] == 1
    assert [(one.path, one.error) for one in broken] == [(places[1], f"{places[1]} does not exist")]


def test_objects_outside_of_the_report_are_not_copied(tmp_path: Path, bucket: str) -> None:
    storage = put(ranks(tmp_path), bucket)
    storage.pipe_file("/bucket/ranks/rank0.warplens/spool/x/large", b"x")
    storage.pipe_file("/bucket/ranks/rank0.warplens/tables/../../../x", b"x")
    with remote.copied(f"{bucket}/rank0.warplens") as copy:
        names = {file.relative_to(copy).parts[0] for file in copy.rglob("*")}
        assert names == {"manifest.d", "tables"}
        assert sorted(copy.parent.iterdir()) == [copy]
    assert not copy.exists()


def test_an_unknown_protocol_is_an_error() -> None:
    with pytest.raises(UsageError, match="nothing://"):
        remote.listed("nothing://bucket/ranks")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a server that speaks S3's protocol."""
    import fsspec

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    facts = {"KEY": "x", "SECRET": "x", "ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    for name, value in facts.items():
        monkeypatch.setenv(f"FSSPEC_S3_{name}", value)
    fsspec.config.set_conf_env(fsspec.config.conf)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        fsspec.filesystem("s3").mkdir("bucket")
        yield "s3://bucket/ranks"
    finally:
        server.terminate()
        server.wait(30)
        fsspec.config.conf.pop("s3", None)


@pytest.mark.slow
@pytest.mark.require("s3")
def test_s3_gives_the_answer_of_the_disk(tmp_path: Path, s3: str) -> None:
    """The bucket is that of moto's server; the workers are other processes, which get its address."""
    assert "FSSPEC_S3_ENDPOINT_URL" in os.environ
    paths = ranks(tmp_path)
    put(paths, s3)
    places = expanded((s3,))
    assert len(places) == 3
    assert same(answered(places, jobs=2), answered(paths))
