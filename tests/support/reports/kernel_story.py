"""Reports of kernels that timed themselves, written down region by region; and a random one, for comparisons with plain readings."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplens.storage.writer import Facts, write_part

Row = dict[str, Any]
ORIGIN = 1_000_000


@dataclass
class Unit:
    """A warp of a launch; times of regions count from the origin of the report."""

    row: Row
    events: list[Row]

    def region(
        self, tag: str, start: int, end: int, kind: str = "region", payload: int | None = None
    ) -> Unit:
        """Add a region."""
        self.events.append(
            {"tag": tag, "start": ORIGIN + start, "end": ORIGIN + end, "kind": kind, "payload": payload}
        )
        return self

    def mark(self, tag: str, at: int) -> Unit:
        """Add a mark."""
        return self.region(tag, at, at, "mark")


@dataclass
class Launch:
    """A launch; what is not given is that of a launch of which all is known."""

    row: Row
    units: list[Unit] = field(default_factory=list)

    def unit(self, cta: int, warp: int, sm: int, start: int, end: int, dropped: int = 0) -> Unit:
        """Add a warp that recorded."""
        row = {
            "cta": cta,
            "warp": warp,
            "sm": sm,
            "sm_end": sm,
            "start": ORIGIN + start,
            "end": ORIGIN + end,
            "dropped": dropped,
        }
        self.units.append(Unit({**row, "ended": True}, []))
        return self.units[-1]


@dataclass
class Story:
    """The launches of a report, in the order of time."""

    launches: list[Launch] = field(default_factory=list)

    def launch(
        self, name: str | None = "gemm", start: int = 0, end: int = 1000, device: int | None = 0, **more: Any
    ) -> Launch:
        """Add a launch from `start` to `end`."""
        about = {
            "buffer": 1,
            "buffer_name": None,
            "generation": len(self.launches) + 1,
            "launched": ORIGIN + start,
        }
        how = {
            "mode": "slices",
            "clock": "globaltimer",
            "merged": "kernel",
            "units_lost": 0,
            "unended": 0,
            "stored": True,
            "thread": 0,
        }
        row = {
            "name": name,
            "start": ORIGIN + start,
            "end": ORIGIN + end,
            "device": device,
            "process": 0,
            **about,
            **how,
            **more,
        }
        self.launches.append(Launch(row))
        return self.launches[-1]

    def write(self, path: Path, end: int = 10_000) -> Path:
        """Write the report, which lasts from 0 to `end`."""
        launches: list[Row] = []
        units: list[Row] = []
        events: list[Row] = []
        for number, launch in enumerate(self.launches):
            dropped = sum(unit.row["dropped"] for unit in launch.units)
            counts = {
                "units": len(launch.units),
                "events": sum(len(unit.events) for unit in launch.units),
                "dropped": dropped,
            }
            launches.append({"id": number, **counts, "slots": 64, "needed_slots": 64 + dropped, **launch.row})
            for unit in launch.units:
                ordered = sorted(unit.events, key=lambda row: (row["start"], -row["end"]))
                events += [
                    {"id": len(events) + at, "process": 0, "launch": number, "unit": len(units), **row}
                    for at, row in enumerate(ordered)
                ]
                units.append(
                    {"id": len(units), "process": 0, "launch": number, "events": len(unit.events), **unit.row}
                )
        who = {"pid": 1, "parent_pid": 0, "executable": "t", "command": "t", "primary": True, "exited": True}
        facts = Facts("t-1-1", "t", "boot", command=["t"], origin=ORIGIN, end=ORIGIN + end)
        tables: dict[str, list[Row]] = {
            "processes": [{"process": 0, "host": "t", "start": ORIGIN, "end": ORIGIN + end, **who}],
            "threads": [{"thread": 0, "process": 0, "tid": 1, "name": "main", "start": ORIGIN}],
            "intrakernel_launches": launches,
            "intrakernel_units": units,
            "intrakernel_events": events,
        }
        write_part(path, facts, tables)
        return path


def chance(seed: int, launches: int = 3, ctas: int = 5, warps: int = 3) -> Story:
    """Return a story of random regions, nested by chance, marks and asynchronous ones among them."""
    dice = random.Random(seed)
    story = Story()
    for number in range(launches):
        begin = number * 3000
        launch = story.launch(dice.choice(["gemm", "attention", None]), begin, begin + 2500)
        for cta in range(ctas):
            for warp in range(warps):
                low, high = sorted(dice.sample(range(begin, begin + 2500), 2))
                unit = launch.unit(cta, warp, dice.randrange(3), low, high)
                for _ in range(dice.randrange(12)):
                    first, last = sorted(dice.choices(range(low, high + 1), k=2))
                    kind = dice.choice(["region", "region", "region", "asynchronous", "mark"])
                    unit.region(
                        dice.choice(["load", "mma", "wait", "store"]),
                        first,
                        first if kind == "mark" else last,
                        kind,
                    )
    return story
