"""Tables of kernels that timed themselves, from a few lines.

`tables=` of `testing.timeline`, for tests that have no GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

_PER_PROCESS = 1 << 32
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Region:
    """A region, or a mark where `end` is None; ns from the origin."""

    tag: str
    start: int
    end: int | None = None
    payload: int | None = None
    asynchronous: bool = False


@dataclass(frozen=True)
class Warp:
    """A warp of a block, where and when it ran."""

    cta: int
    warp: int
    sm: int
    start: int
    end: int
    regions: Sequence[Region] = ()


@dataclass(frozen=True)
class DrawnLaunch:
    """A launch.

    `kernel`: the row of its kernel in its process, None: none was recorded; `device` and `stream`
    are None with it then.
    """

    name: str
    start: int
    end: int
    warps: Sequence[Warp] = field(default_factory=tuple)
    kernel: int | None = 0
    api: int | None = None
    device: int | None = 0
    stream: int | None = 7
    offset: int = 0
    uncertainty: int = 800


def launch_tables(launches: Sequence[DrawnLaunch], *, origin: int = 1_000_000_000, process: int = 0) -> Rows:
    """Return the rows of the three tables.

    `origin`: what times are counted from; `process`: whose they are (its number in the report).
    """
    base = process * _PER_PROCESS
    tables: Rows = {"intrakernel_launches": [], "intrakernel_units": [], "intrakernel_events": []}
    for number, launch in enumerate(launches):
        key = base + number
        events = sum(len(warp.regions) for warp in launch.warps)
        row = _launch(launch, key, process, origin=origin, number=number)
        tables["intrakernel_launches"].append({**row, "units": len(launch.warps), "events": events})
        for warp in launch.warps:
            unit = base + len(tables["intrakernel_units"])
            times = {"start": origin + warp.start, "end": origin + warp.end}
            place = {"cta": warp.cta, "warp": warp.warp, "sm": warp.sm, "sm_end": warp.sm}
            counts = {"events": len(warp.regions), "dropped": 0, "ended": True}
            tables["intrakernel_units"].append(
                {"id": unit, "process": process, "launch": key, **place, **times, **counts}
            )
            for region in sorted(
                warp.regions,
                key=lambda drawn_region: (drawn_region.start, -(drawn_region.end or drawn_region.start)),
            ):
                end = region.start if region.end is None else region.end
                kind = "mark" if region.end is None else "asynchronous" if region.asynchronous else "region"
                tables["intrakernel_events"].append(
                    {
                        "id": base + len(tables["intrakernel_events"]),
                        "process": process,
                        "launch": key,
                        "unit": unit,
                        "start": origin + region.start,
                        "end": origin + end,
                        "tag": region.tag,
                        "kind": kind,
                        "payload": region.payload,
                    }
                )
    return tables


def pipeline(begin: int, end: int, *, sms: int = 4, blocks: int = 8, tiles: int = 4) -> Iterator[Warp]:
    """Yield the warps of a kernel with a producer and a consumer; the last wave is not full.

    Warp 0 has `load`, warp 1 `wait` and `compute`.

    `blocks` run `sms` at a time; each does `tiles` tiles, in regions `tile` with the number of the tile as payload, and marks `done`.
    """
    waves = -(-blocks // sms)
    length = (end - begin) // waves
    for cta in range(blocks):
        first = begin + cta // sms * length
        last = first + length * 9 // 10 - cta % sms * length // 50
        step = (last - first) // tiles
        loads, tasks = [], []
        for tile in range(tiles):
            at = first + tile * step
            loads += [
                Region("tile", at, at + step, payload=tile),
                Region("load", at + step // 20, at + step * 6 // 10),
            ]
            tasks += [
                Region("tile", at, at + step, payload=tile),
                Region("wait", at + step // 20, at + step * 6 // 10),
                Region("compute", at + step * 6 // 10, at + step * 19 // 20),
            ]
        for warp, regions in enumerate((loads, tasks)):
            yield Warp(
                cta, warp, cta % sms, start=first, end=last, regions=[*regions, Region("done", last - 1)]
            )


def _launch(launch: DrawnLaunch, key: int, process: int, origin: int, number: int) -> dict[str, Any]:
    base = process * _PER_PROCESS
    has = launch.kernel is not None
    return {
        "id": key,
        "process": process,
        "thread": base,
        "name": launch.name,
        "buffer": 1,
        "buffer_name": None,
        "generation": number + 1,
        "launched": origin + launch.start,
        "start": origin + launch.start,
        "end": origin + launch.end,
        "kernel": base + launch.kernel if launch.kernel is not None else None,
        "api": None if launch.api is None else base + launch.api,
        "correlation": None,
        "device": launch.device,
        "stream": launch.stream if has else None,
        "mode": "slices",
        "clock": "globaltimer",
        "merged": "kernel" if has else "bracket",
        "offset": launch.offset,
        "uncertainty": launch.uncertainty,
        "drift": 0.0,
        "dropped": 0,
        "units_lost": 0,
        "unended": 0,
        "slots": 256,
        "needed_slots": max((len(warp.regions) for warp in launch.warps), default=0),
        "sample_blocks": 1,
        "stored": True,
    }
