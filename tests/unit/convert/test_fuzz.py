"""Whatever stands in the files beside the spools, a recording becomes a report or a clean refusal, and nothing else is touched."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import THOROUGH, few
from tests.unit.convert.recording import recording
from warplens.convert.finish import snapshot
from warplens.errors import WarplensError
from warplens.handover import pending, seals
from warplens.report import open as open_report
from warplens.testing import spool_writer as sw

pytestmark = pytest.mark.slow


CLOCKS = "".join(
    json.dumps({"counter": t, "monotonic": t, "realtime": 10**18 + t}) + "\n" for t in (1, 1000, 2000)
)
WINDOWS = [(400, 450, 1, 7, 0), (500, 2_150, 5, 5, 10), (2_150, 0, 3, 0, 11)]
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1,
        1 << 31,
        1 << 62,
        1 << 63,
        1 << 64,
        -(1 << 70),
        10**30,
        1.5,
        1e308,
        float("inf"),
        float("nan"),
    ),
    *("", "x", "\0", "\ud800", "../../x", "/", "a" * 5_000, [], [[]], {}, {"a": 1}, ["\ud800", 3], "10"),
)


def world(tmp_path: Path) -> tuple[Path, pending.Pending]:
    """A recording in a report, and beside it what nobody may touch."""
    report = tmp_path / "r.warplens"
    spool = recording(report / "spool" / "one", launch={}, clocks=CLOCKS)
    (spool / "control").write_bytes(sw.control(WINDOWS, keep_ns=1_000))
    (tmp_path / "thesis.txt").write_text("all of it")
    (tmp_path / "x.spool").write_text("not ours")
    return report, pending.adopt(report, spool, "one")


def check(tmp_path: Path, report: Path) -> None:
    """Open the report; check what is in it if it opens."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened = open_report(report)
            for name, rows in opened.tables.items():
                assert opened.table(name).num_rows == rows, name
            numbers = opened.table("capture_windows", ["number"]).column(0).to_pylist()
            for number in numbers[:3]:
                with opened.window(number) as window:
                    window.sql("SELECT count(*) FROM nvtx_ranges")
    except WarplensError:
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.warplens", "thesis.txt", "x.spool"]
    assert (tmp_path / "thesis.txt").read_text() == "all of it"


def scrambled(data: bytes, chance: random.Random) -> bytes:
    """Change some bytes, cut some off, repeat some."""
    found = bytearray(data)
    first = min(len(found), 400)
    for _ in range(chance.choice((1, 3, 30))):
        if found:
            place = chance.randrange(first) if chance.random() < 0.7 else chance.randrange(len(found))
            found[place] = chance.choice((0, 255, chance.randrange(256)))
    kind = chance.random()
    if kind < 0.15:
        del found[chance.randrange(len(found) + 1) :]
    elif kind < 0.3:
        found += found[: chance.randrange(1, 5_000)]
    return bytes(found)


@pytest.mark.parametrize("name", few(["control", "launch.json", "clocks.jsonl", "processes.log"], 2))
@pytest.mark.parametrize("live", few([False, True]))
def test_any_bytes(tmp_path: Path, name: str, live: bool) -> None:
    chance = random.Random(f"{name}{live}")
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        report, note = world(folder)
        path = Path(note.spool) / name
        path.write_bytes(scrambled(path.read_bytes() if path.exists() else os.urandom(300), chance))
        if live:
            try:
                snapshot(note)
            except WarplensError:
                pass
        check(folder, report)


def put_somewhere(data: Any, value: Any, chance: random.Random) -> None:
    """Put a value somewhere into a tree of JSON."""
    while True:
        key = chance.choice(list(data) if isinstance(data, dict) else range(len(data)))
        if isinstance(data[key], (dict, list)) and data[key] and chance.random() < 0.7:
            data = data[key]
            continue
        data[key] = value
        return


def test_odd_values_in_the_launchers_notes(tmp_path: Path) -> None:
    chance = random.Random(1)
    for number, value in enumerate(ODD if THOROUGH else ODD[::4]):
        folder = tmp_path / str(number)
        folder.mkdir()
        report, note = world(folder)
        path = Path(note.spool) / "launch.json"
        data = {
            **json.loads(path.read_text()),
            "primary_end_ns": 5,
            "job": "j",
            "last_alive": {"host-11-5.spool": 9},
        }
        for _ in range(5):
            put_somewhere(data, value, chance)
        path.write_text(json.dumps(data))
        (Path(note.spool) / "clocks.jsonl").write_text(
            json.dumps({"counter": value, "monotonic": 5, "realtime": value}) + "\n" + CLOCKS
        )
        check(folder, report)


def test_odd_values_in_the_note(tmp_path: Path) -> None:
    for number, value in enumerate(ODD if THOROUGH else ODD[2::4]):
        folder = tmp_path / str(number)
        folder.mkdir()
        report, note = world(folder)
        (report / "spool").rename(report / "elsewhere")  # so that the note is what names the spool
        data = {**json.loads(note.path.read_text()), "spool": str(report / "elsewhere" / "one")}
        for member in ("id", "spool", "host", "boot_id", "pid", "start_ticks", "job", "keep_raw", "ended"):
            (note.path.parent / f"{member}.json").write_text(
                json.dumps(seals.sealed({**data, "id": member, member: value}))
            )
        note.path.unlink()
        check(folder, report)


@pytest.mark.parametrize(
    "make",
    few(
        [
            Path.mkdir,
            os.mkfifo,
            lambda path: path.symlink_to("/dev/zero"),
            lambda path: path.symlink_to(path),
        ],
        2,
    ),
)
@pytest.mark.parametrize(
    "name",
    few(
        ["control", "launch.json", "host-77-1.spool", "pending", "manifest", "clocks.jsonl", "processes.log"],
        5,
    ),
)
def test_things_that_are_no_files(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    report, note = world(tmp_path)
    places = {"pending": note.path.with_name("two.json"), "manifest": report / "manifest.d" / "two.json"}
    path = places.get(name, Path(note.spool) / name)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    check(tmp_path, report)


def test_very_long_logs_are_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from warplens.spool import clock

    monkeypatch.setattr(clock, "_MOST", 100)
    line = '{{"counter": {0}, "monotonic": {0}, "realtime": {0}}}\n'.format
    (tmp_path / "clocks.jsonl").write_text(
        "".join(map(line, range(1, 1_001))) + "x" * 100_000 + "\n" + line(2_000)
    )
    samples = clock.read_samples(tmp_path / "clocks.jsonl")
    assert 50 <= len(samples) <= 101
    assert len({second.counter - first.counter for first, second in itertools.pairwise(samples[:-1])}) == 1


def test_notes_name_no_file_outside(tmp_path: Path) -> None:
    report, note = world(tmp_path)
    for name in ("../../thesis.txt", "..", "a/b"):
        data = json.loads(note.path.read_text())
        (report / "pending.d" / f"{re.sub('[^a-z]', '', name)}x.json").write_text(
            json.dumps(seals.sealed({**data, "id": name}))
        )
    check(tmp_path, report)
