"""A storm of threads while windows of the capture open and close: what is kept and what is not must agree with the times, of each event."""

from __future__ import annotations

import random
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.programs.capturing import CLIPPED, Capture
from tests.support.reports.spool_records import Record
from warplens.recording.agent.control_file import Window

pytestmark = [pytest.mark.require("gcc")]
Target = Callable[..., Path]
EVENT = struct.Struct("<6Q")
READ_AHEAD = (
    200  # ns: a counter may be read that much earlier or later than what stands beside it in the program
)


@dataclass(frozen=True)
class Event:
    """What a thread logged: its event began between the first two times, and ended between the others."""

    id: int
    kind: int
    begin: tuple[int, int]
    end: tuple[int, int]


def logged(path: Path) -> list[Event]:
    """All events of the storm."""
    return [
        Event(id_, kind, (a, b), (c, d)) for id_, kind, a, b, c, d in EVENT.iter_unpack(path.read_bytes())
    ]


def edges(windows: Iterable[Window]) -> list[tuple[int, int]]:
    """Begin and end of each window."""
    return [(window.open_ns, window.close_ns or 1 << 62) for window in windows]


def check(capture: Capture, events: list[Event]) -> tuple[int, int]:
    """Compare; return by how much the clocks differ (ns), and how many ranges cross an edge."""
    windows = edges(capture.windows())
    assert all(begin < end for begin, end in windows)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(windows))
    records: dict[int, Record] = {}
    for record in capture.records("range", "start_end", "mark"):
        assert record["payload"] not in records
        records[record["payload"]] = record
    # Their clock and ours differ a little; by how much, the events that were kept tell.
    off = 1000
    for event in events:
        if (kept := records.get(event.id)) is not None:
            off = max(off, event.begin[0] - kept["start"], kept["start"] - event.begin[1])
            off = max(off, event.end[0] - kept["end"], kept["end"] - event.end[1])
    clipped = 0
    for event in events:
        kept = records.pop(event.id, None)
        if kept is None:
            inside = [w for w in windows if event.begin[1] + off < w[1] and event.end[0] - off > w[0]]
            if event.kind == 2:
                inside = [w for w in inside if event.begin[0] - off > w[0] and event.end[1] + off < w[1]]
            assert not inside, (event, inside)
            continue
        start, end = kept["start"], kept["end"]
        near = [w for w in windows if start < w[1] + READ_AHEAD and end > w[0] - READ_AHEAD]
        assert near, (event, start, end)
        exact = any(abs(one - edge) <= READ_AHEAD for one in (start, end) for w in near for edge in w)
        cut = any(start < edge < end for w in near for edge in w)
        clipped += cut
        assert exact or event.kind == 2 or bool(kept["flags"] & CLIPPED) == cut, (event, start, end, near)
    assert not records
    return off, clipped


def toggle(capture: Capture, stop: threading.Event, seed: int) -> None:
    """Open and close windows until told to stop."""
    pick = random.Random(seed)
    while not stop.is_set():
        capture.open()
        time.sleep(pick.choice((0, 0.0005, 0.003, 0.01)))
        capture.close()
        time.sleep(pick.choice((0, 0.0005, 0.003, 0.01)))


@pytest.mark.parametrize("words", [[], ["capture"]], ids=["commands", "ranges"])
def test_every_decision_agrees_with_the_times(tmp_path: Path, target: Target, words: list[str]) -> None:
    program = target("nvtx_window_storm")
    for events in (12_000, 60_000, 300_000):  # more, where a busy machine had few windows meanwhile
        capture = Capture(tmp_path / f"spool{events}", trigger=1 if words else 0, message="capture")
        log = tmp_path / f"log{events}"
        storm(program, capture, log, events, words)
        _, clipped = check(capture, logged(log))
        if len(capture.windows()) > 20 and clipped:
            break
    assert len(capture.windows()) > 20
    assert clipped > 0
    assert len(logged(log)) >= 6 * events
    if words:
        assert any(window.opened_by == "nvtx" for window in capture.windows())
    assert 0 < len(capture.records("range", "start_end", "mark")) < len(logged(log))


def storm(program: Path, capture: Capture, log: Path, events: int, words: list[str]) -> None:
    """Six threads make so many events each, while others open and close windows."""
    stop = threading.Event()
    togglers = [
        threading.Thread(target=toggle, args=(capture, stop, seed)) for seed in range(1 if words else 2)
    ]
    try:
        with subprocess.Popen(
            [program, "6", str(events), log, *words], env=capture.environment(), stdout=subprocess.PIPE
        ) as process:
            for toggler in togglers:
                toggler.start()
            assert process.wait(timeout=200) == 0
    finally:
        stop.set()
        for toggler in togglers:
            toggler.join()
