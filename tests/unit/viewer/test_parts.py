"""The small parts of the server: values, parameters, tokens and names, plots, files of the page."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warplens.errors import UsageError
from warplens.timeline.index import IndexNames, Viewport
from warplens.timeline.index.layout import NAME
from warplens.timeline.tree import CounterOwner
from warplens.viewer import limits
from warplens.viewer.answers.binary import Rects, short
from warplens.viewer.answers.counters import Counter
from warplens.viewer.answers.flames import _paths, _positions
from warplens.viewer.answers.plain import encoded, plain, tree
from warplens.viewer.bundle import files
from warplens.viewer.page.perfetto import address_of, pages
from warplens.viewer.server.guard import Keys
from warplens.viewer.server.parameters import Parameters
from warplens.viewer.server.serving import listen
from warplens.viewer.server.workers import Busy, Workers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (2**53, 2**53),
        (2**60, str(2**60)),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ("text", "text"),
        (b"\x01\xff", "0x01ff"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_cells_are_what_json_can_hold(value: Any, shown: Any) -> None:
    assert plain(value) == shown
    assert json.loads(encoded(plain(value))) == shown


def test_texts_and_trees_are_bounded() -> None:
    assert len(str(plain("x" * 10_000))) == limits.CELL
    deep: Any = "leaf"
    for _ in range(100):
        deep = {"a": [deep]}
    assert len(encoded(tree(deep))) < 200
    assert len(tree(list(range(10_000)))) == 1_000
    lone = json.loads('"\\ud800"')
    assert json.loads(encoded(plain(lone))) == lone


@pytest.mark.parametrize(
    "text", ["x" * 96, "x" * 97, "é" * 60, "💥" * 30, "", "a" * 95 + "é", "\ud800" * 100]
)
def test_short_names_are_whole_characters(text: str) -> None:
    cut = short(text)
    assert len(cut) <= limits.NAME
    found = cut.decode()
    whole = text.encode("utf-8", "replace").decode()
    assert found == whole or (found.endswith("…") and whole.startswith(found[:-1]))


def test_parameters_are_read_and_bounded() -> None:
    asked = Parameters({"n": "7", "t": "1.5e3", "tracks": "1,4-6", "yes": "1", "begin": "1.2", "end": "2.2"})
    assert (asked.whole("n"), asked.whole("n", most=5), asked.whole("none", 3)) == (7, 5, 3)
    assert asked.time("t") == 1500
    assert asked.numbers("tracks") == [1, 4, 5, 6]
    assert (asked.flag("yes"), asked.flag("no")) == (True, False)
    assert asked.span() == (1, 3)
    assert Parameters({}).span() == (None, None)
    assert Parameters({}).numbers("tracks") == []


@pytest.mark.parametrize("text", ["1-", "-1", "2-1", "0-20000", "1,,x", "0-9,0-19995", "９-9x", "1" * 30])
def test_lists_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Parameters({"tracks": text}).numbers("tracks")


def test_tokens_of_one_use_are_used_once() -> None:
    keys = Keys(1)
    once = keys.once()
    assert len({keys.token, keys.session, once}) == 3
    assert keys.enters(keys.token)
    assert keys.enters(keys.token)
    assert keys.enters(once)
    assert not keys.enters(once)
    assert not keys.enters("")


def test_a_port_is_listened_to_before_anything_answers() -> None:
    door = listen()
    try:
        assert door.address.startswith(f"http://127.0.0.1:{door.port}/?token=")
        assert door.forward.startswith(f"ssh -N -L {door.port}:127.0.0.1:{door.port} ")
        with pytest.raises(UsageError, match="cannot listen"):
            listen(port=door.port)
    finally:
        door.listening.close()
    with pytest.raises(UsageError, match="allow-remote"):
        listen("0.0.0.0")


def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged() -> None:
    door = listen()
    try:
        with socket.create_connection(("127.0.0.1", door.port)):
            accepted, _ = door.listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        door.listening.close()


def test_times_of_a_clock_that_counts_from_1970_keep_every_nanosecond() -> None:
    origin = 1_795_000_000_000_000_001
    one = np.array([0], np.uint32)
    names = IndexNames(np.zeros(1, NAME), pa.array(["x"]), one, ["kernels"])
    runs, starts, durations = np.array([[0, 0, 0, 1]], np.uint32), np.array([origin + 7]), np.array([2])
    view = Viewport(
        origin, origin + 9, 1, runs, starts, durations, one, one, one, np.ones(1, np.float32), one
    )
    answer = Rects.joined([(0, names, view)]).encoded(0.0, 9.0, origin)
    assert struct.unpack_from("<2d", answer, 48 + 16) == (7.0, 2.0)


def counter(values: list[float], step: int = 10) -> Counter:
    return Counter(
        "nvtx_counters", "0", "x", "", CounterOwner(0), np.arange(len(values)) * step, np.array(values, float)
    )


def test_a_plot_has_the_extremes_of_each_column() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=100_000).tolist()
    one = counter(values)
    time, low, high, last = one.plot(200_000, 800_000, 100)
    assert len(time) == 101
    assert time[0] == 199_990, "what holds when the plot begins"
    for column in range(100):
        inside = values[20_000 + column * 600 : 20_000 + (column + 1) * 600]
        assert (low[column + 1], high[column + 1], last[column + 1]) == (min(inside), max(inside), inside[-1])
    assert (one.low, one.high) == (min(values), max(values))


def test_long_plots_are_summed_up_by_blocks() -> None:
    values = np.random.default_rng(6).normal(size=600_000)
    one = Counter("nvtx_counters", "0", "x", "", CounterOwner(0), np.arange(600_000), values)
    _, low, high, _ = one.plot(0, 600_000, 64)
    edges = [int(n * 600_000 / 64) for n in range(65)]
    parts = [values[a:b] for a, b in itertools.pairwise(edges)]
    assert low.tolist() == [part.min() for part in parts]
    assert high.tolist() == [part.max() for part in parts]


def test_gaps_and_infinities_of_a_counter_have_no_value() -> None:
    one = counter([1, float("nan"), float("inf"), 4])
    _, low, _, _ = one.plot(0, 100, 1000)
    assert np.isnan(low).tolist() == [False, True, True, False]
    assert (one.low, one.high) == (1, 4)
    assert [len(column) for column in counter([]).plot(0, 10, 10)] == [0, 0, 0, 0]
    assert counter([1, 2]).plot(500, 600, 10)[3].tolist() == [2]


def test_paths_of_names_are_summed_up() -> None:
    #      0: a   1: a/b  2: a  3: a/b  4: a/c  5: itself its parent
    parent = np.array([-1, 0, -1, 2, 2, 5])
    parents, labels, node = _paths(parent, np.array([0, 1, 0, 1, 2, 0]))
    assert (parents.tolist(), labels.tolist()) == ([-1, 0, 0], [0, 1, 2])
    assert node.tolist() == [0, 1, 0, 1, 2, 0]
    assert _positions(np.array([7, 3, 9]), np.array([9, -1, 7, 4])).tolist() == [2, -1, 0, -1]


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("localhost:10000", "http://localhost:10000"),
        ("https://ui.perfetto.dev/#!/x", "https://ui.perfetto.dev"),
        ("http://[::1]:1/a", "http://[::1]:1"),
    ],
)
def test_addresses_of_a_perfetto_ui(text: str, origin: str) -> None:
    assert address_of(text) == origin


def test_the_page_for_perfetto_has_no_script_of_its_own() -> None:
    found = pages('<img src=x>"', "https://ui.perfetto.dev")
    assert b"<img" not in found["/"].content
    assert found["/"].content.count(b"<script") == 1
    assert b'<script type="module" src="/perfetto.js"></script>' in found["/"].content


def test_the_files_of_the_page_are_those_that_were_built(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("page")
    (tmp_path / "assets" / "x-1a2b.js").write_text("script")
    (tmp_path / "secret.txt").write_text("no")
    found = files(tmp_path)
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "index.html").write_text("page in one piece")
    assert files(tmp_path) == found
    assert {path: file.kept for path, file in found.items()} == {"/": False, "/assets/x-1a2b.js": True}
    assert files(tmp_path, single=True)["/"].content == b"page in one piece"
    assert b"make web" in files(tmp_path / "nothing")["/"].content


def test_heavy_answers_are_computed_once_and_errors_again() -> None:
    workers = Workers()
    calls: list[str] = []

    def work() -> str:
        calls.append("x")
        if len(calls) == 1:
            raise UsageError("first")
        return "answer"

    async def ask() -> None:
        with pytest.raises(UsageError):
            await workers.heavy("key", work)
        assert await asyncio.gather(*(workers.heavy("key", work) for _ in range(5))) == ["answer"] * 5

    asyncio.run(ask())
    assert len(calls) == 2
    workers.close()


def test_a_slow_answer_continues_and_is_ready_for_the_next_request() -> None:
    workers, go = Workers(), threading.Event()

    async def ask() -> None:
        with pytest.raises(Busy, match="try again later"):
            await workers.heavy("key", lambda: go.wait(60), seconds=0)
        go.set()
        assert await workers.heavy("key", lambda: False) is True

    asyncio.run(ask())
    workers.close()


def test_background_work_is_busy_and_its_error_stays_there() -> None:
    """A server that ends meanwhile must not end Python under a thread that computes."""
    workers, go = Workers(), threading.Event()
    ended = threading.Event()

    def work() -> None:
        go.wait(60)
        ended.set()
        raise UsageError("for whoever asks for the same")

    workers.begin(work)
    assert workers.busy
    go.set()
    assert ended.wait(60)
    assert asyncio.run(workers.heavy("key", lambda: 5)) == 5
    workers.close()


def test_no_more_wait_than_can_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING", 3)
    workers, go = Workers(), threading.Event()

    async def ask() -> None:
        waiting = [asyncio.ensure_future(workers.sql(lambda: go.wait(60))) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="too many"):
            await workers.sql(lambda: None)
        go.set()
        assert await asyncio.gather(*waiting) == [True] * 3

    asyncio.run(ask())
    workers.close()


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="this system has no scheduling classes")
def test_processes_of_heavy_questions_leave_the_cores_to_the_page() -> None:
    text = "from warplens.handover.priority import step_back; step_back(15, batch=True); print(os.nice(0), os.sched_getscheduler(0))"
    said = subprocess.run(
        [sys.executable, "-c", f"import os; {text}"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert (int(said[0]), int(said[1])) == (min(os.nice(0) + 15, 19), os.SCHED_BATCH)
