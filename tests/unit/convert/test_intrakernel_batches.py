"""Small pieces are decoded together: their rows are those that each gives alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from tests.unit.convert.test_intrakernel_tables import BUFFER, GPU, TAGS, TEXTS, note, read, report
from warplens.convert.intrakernel import batch
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

TABLES = ("intrakernel_launches", "intrakernel_units", "intrakernel_events")


def _piece(dice: random.Random, begin: int, generation: int, keep: int) -> bytes:
    """A few warps; now and then one that did not end, whose records did not fit, that is cut off, or no buffer at all."""
    units = []
    odd = dice.random()
    slots = dice.choice([4, 8, 20])
    for cta in range(dice.randrange(1, 6)):
        count = dice.randrange(0, slots + (5 if odd < 0.1 else 1))
        times = sorted(dice.sample(range(begin, begin + 9_000), 2 * count))
        events = [
            BufferEvent(
                dice.choice([0, 1, 7, 9]),
                GPU + first,
                GPU + last,
                payload=dice.randrange(100),
                flags=dice.choice([0, 0, 0, 2]),
            )
            for first, last in zip(times[::2], times[1::2], strict=True)
        ]
        units.append(
            BufferUnit(
                events,
                cta=cta,
                sm=cta,
                begin=GPU + begin,
                end=GPU + begin + 9_000,
                ended=odd < 0.9 or cta > 0,
            )
        )
    more: dict[str, Any] = {"generation": generation, "keep": keep}
    if 0.1 < odd < 0.2:
        more["clock"] = "clock"
    elif 0.25 < odd < 0.3:
        more["mode"] = "claim"
    elif 0.3 < odd < 0.33:
        more["generation"] = generation + 1
    data = bytes(buffer_bytes(units, slots=slots, **more))
    return data[:200] if 0.33 < odd < 0.36 else data[:-90] if 0.36 < odd < 0.4 else data


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(6), 2))
def test_together_as_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(batch, "_MOST", 3000)
    count = 60
    noted = [note(number, 20_000 * number, generation=number) for number in range(1, count + 1)]
    reads = [
        read(
            number,
            20_000 * number + 15_000,
            20_000 * number + 1_000,
            20_000 * number + 10_000,
            tags=dice.choice([TAGS, TAGS, BUFFER]),
        )
        for number in range(1, count + 1)
    ]
    pieces: dict[int, Sequence[bytes]] = {}
    for number in range(1, count + 1):
        keep = dice.choice([0] * 20 + [5])
        pieces[number] = [
            _piece(dice, 20_000 * number + 1_000, number, keep) for _ in range(dice.randrange(1, 4))
        ]
    assert TEXTS[BUFFER] != TEXTS[TAGS]
    (tmp_path / "together").mkdir()
    (tmp_path / "alone").mkdir()
    together = report(tmp_path / "together", noted, reads, pieces)
    monkeypatch.setattr(batch, "_SMALL", 0)
    alone = report(tmp_path / "alone", noted, reads, pieces)
    for table in TABLES:
        assert together[table] == alone[table]
    assert len(alone["intrakernel_events"]) > 500
    for code in (
        "intrakernel-dropped",
        "intrakernel-garbled",
        "intrakernel-damaged",
        "intrakernel-unended",
        "intrakernel-keep",
    ):
        assert [row["count"] for row in together.notes(code)] == [row["count"] for row in alone.notes(code)]
