"""The example: it takes the best way that is there, and notices events that are not as they should be."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warplens import intrakernel as ik
from warplens.catalog import units
from warplens.errors import CaptureError
from warplens.intrakernel import example
from warplens.intrakernel.dsl import EXAMPLE_GRID, EXAMPLE_TAGS, EXAMPLE_TILES
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

PAYLOADS = ("load", "compute", "store", "tile")


def unit(cta: int, warp: int) -> BufferUnit:
    events = []
    for tile in range(EXAMPLE_TILES):
        begin = 1_000_000 + 1000 * tile
        spans = {"load": (10, 20), "compute": (20, 70), "store": (70, 80), "tile": (10, 90)}
        events += [
            BufferEvent(EXAMPLE_TAGS.index(name), begin + spans[name][0], begin + spans[name][1], tile)
            for name in PAYLOADS
        ]
    done = BufferEvent(EXAMPLE_TAGS.index("done"), 1_900_000, 1_900_000, flags=1)
    return BufferUnit([*events, done], cta, warp)


def recorded(units: list[BufferUnit]) -> ik.Buffer:
    """A buffer with these units, as a language's `example` returns it."""
    buffer = ik.allocate(EXAMPLE_GRID, 2, slots=32, tags=EXAMPLE_TAGS, device="cpu")
    data = buffer_bytes(units, slots=32)
    buffer.memory[256 : len(data)] = data[256:]
    return buffer


def right() -> list[BufferUnit]:
    return [unit(cta, warp) for cta in range(EXAMPLE_GRID) for warp in range(2)]


def test_a_right_buffer_passes_the_check() -> None:
    buffer = recorded(right())
    assert example.check(buffer, buffer.decode()) == []


def wrongs() -> dict[str, tuple[Any, str]]:
    """What may be wrong of the third unit: a change of its events, and what is said then."""

    def moved(events: list[BufferEvent]) -> list[BufferEvent]:
        return [events[0], BufferEvent(events[1].tag, events[1].start - 5, events[1].end, 0), *events[2:]]

    return {
        "order": (
            lambda events: [events[1], events[0], *events[2:]],
            "CTA 1 warp 0 has recorded compute, load",
        ),
        "missing": (lambda events: events[:-1], "CTA 1 warp 0 has recorded"),
        "overlap": (moved, "do not follow each other"),
        "payload": (
            lambda events: [BufferEvent(events[0].tag, events[0].start, events[0].end, 3), *events[1:]],
            "another number",
        ),
        "mark": (
            lambda events: [*events[:-1], BufferEvent(4, 1_900_000, 1_900_001)],
            "mark of CTA 1 warp 0 is none",
        ),
        "dropped": (lambda events: [*events, *events, *events], "did not fit"),
    }


@pytest.mark.parametrize("what", wrongs())
def test_a_wrong_buffer_gets_its_complaint(what: str) -> None:
    change, says = wrongs()[what]
    units = right()
    units[2].events = change(list(units[2].events))
    buffer = recorded(units)
    assert says in "; ".join(example.check(buffer, buffer.decode()))


def test_missing_units_are_said() -> None:
    buffer = recorded(right()[:-1])
    assert "7 units recorded, not 8" in example.check(buffer, buffer.decode())


def language(buffer: ik.Buffer | Exception) -> Any:
    def run(way: str) -> ik.Buffer:
        if isinstance(buffer, Exception):
            raise buffer
        return buffer

    return SimpleNamespace(example=run)


def test_the_best_way_that_runs_writes_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = AttributeError(
        "module 'numba.types' has no attribute 'NPDatetime'"
    )  # of packages that do not fit each other
    there = [
        ("gpu", "cute", language(CaptureError("out of memory"))),
        ("gpu", "numba", language(broken)),
        ("interpreter", "triton", language(recorded(right()))),
    ]
    monkeypatch.setattr(example, "_choices", lambda only: (there, []))
    path = tmp_path / "trace.json"
    assert example.main(["--out", str(path)]) == 0
    said = capsys.readouterr()
    assert "cute (gpu) does not run here: out of memory" in said.err
    assert "numba (gpu) does not run here: AttributeError(" in said.err
    assert "triton (interpreter): 136 events of 8 warps" in said.out
    assert "compute   32 times,     0.05 us" in said.out
    assert (
        len([event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]) == 8 * 16
    )


def test_wrong_events_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = [("host", "cuda", language(recorded(right()[:3])))]
    monkeypatch.setattr(example, "_choices", lambda only: (there, []))
    path = tmp_path / "trace.json"
    assert example.main(["--out", str(path)]) == 1
    assert "3 units recorded" in capsys.readouterr().err
    assert not path.exists()


def test_a_machine_without_any_language_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(example, "_choices", lambda only: ([], ["triton (gpu): triton is not installed"]))
    assert example.main([]) == 1
    told = capsys.readouterr().err
    assert "triton is not installed" in told
    assert "A C++ compiler" in told
    for unit in units("intrakernel.dsl"):
        assert example.main(["--dsl", unit.id]) == 1
        assert "To install: " in capsys.readouterr().err.splitlines()[-1]
