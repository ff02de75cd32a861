"""Draw a timeline, get a report: one column is one tick.

    main    |[step        ][step      ]  !save
    main    |  [load ]
    w@io    |     [read         ]
    p1/main |        {async   }
    main    |  <open
    main#t1 |{fetch    }
    main~mem|0   3   1.5   ?

A line is `[process/]thread[#task][@domain] |picture`. `[name ]` is a push/pop range from its `[` to just behind its `]`, `{name}` a
start/end range, `!name` a mark, `<name` a range that is still open at the end (`unfinished`). A name ends at the first
space; what follows in the brackets only gives the length. Lines may repeat a thread (nesting, crossing domains, tasks).
`thread~counter[@domain] |picture` holds the samples of a counter: each number where it begins, `?` where there was no value.
`windows |[start   ]  [nvtx ]` draws the windows of the capture, called by what opened and closed them; without it, one lasts throughout.
Ranges across an edge are flagged; nothing drawn is left out.

CUDA has separate rows, in round brackets; what has one `#label` belongs to one API call of the process (a label of digits is the
correlation itself; GPU work whose label no call has is that of a call which was not recorded, without a label it has none):

    main:api      |(cudaLaunchKernel#1)(cudaMemcpyAsync#2)(cuCtxSynchronize )
    gpu0.7        |   (gemm#1   )(HtoD#2 )(memset )(graph#9 )  !3#4
    :sync         |                                (Context )
    main:overhead |(Buffer_flush )
    :um           |(HtoD ) (CPU_page_fault )
    gpu0:memory   |+4096#5   -4096
    gpu0~SM_Active|0    55.5

`gpu0.7` is stream 7 of device 0, whose context is 1 (device + 1): `HtoD DtoH DtoD PtoP HtoH` are copies, `memset` and `graph` what they
are called, `!3` is CUDA event 3, all else a kernel. Functions `cuXxx` are the driver's, others the runtime's. `_` in kinds and metrics
stands for a space. `cuda` sets columns, by name or by `#label`: `{"gemm": {"grid_x": 8}, "#2": {"bytes": 4096}, "gpu0": {"name": "H100"}}`.

The CPU side has rows like these; one that is nested in another is drawn in a separate line:

    main:python   |(main;load;read     )(main:7;step:12#task )
    main:native   |(main;run@libx.so;copy@kernel )
    main:task     |(A:outer<*A;main )(A:running<*A;main )(A<*A;get )
    main:state    |(running:1 )(blocked:poll )(runnable )
    main:os       |(poll )(read:/data/a<main;load )
    main:gil      |(hold  )(wait  )
    main:gc       |(2     )
    main:import   |(numpy )
    main:call     |(load  )!ValueError (task:work )

A stack is `outermost;…;innermost`. Each of its frames is a function, `@module` where it is native code (`@kernel`: of the kernel) and `:12`
its line; `#name` behind a stack is an asyncio task. A row `task` has the task, its state (`running`, `ready`, `outer`, or it awaits
something) and behind `<` its stack, where `*A` begins a task. Each column of a sample is one tick. A state has its CPU or its reason, an OS
call what it is about and, behind `<`, its stack; those on files are rows of `file_access`, too. `!Name` is an exception, or a warning if it
is called so. `cpu` sets columns by name, of frames by function: `{"read:/data/a": {"bytes": 4096}, "step": {"file": "/model.py"}}`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warplens import native
from warplens.storage.manifest import Manifest
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, Facts, write_part
from warplens.testing import cpu_pictures, cuda_pictures
from warplens.testing.cpu_pictures import Happening
from warplens.testing.cuda_pictures import Op, Scene

_MACHINE = {"os": "Linux", "kernel": "6", "machine": "x86_64", "cpu": "CPU", "cpus": 2, "memory": 1 << 30}
_Extra = Mapping[str, Mapping[str, Any]]
_TASKS_PER_PROCESS = _COUNTERS_PER_PROCESS = 1 << 32
_WINDOWS = "windows"
_SAMPLE = re.compile(r"(?P<sample>\?|[+-]?\d[\d.]*)")
_PIECE = re.compile(
    r"\[(?P<push>[^\]]*)\]|\{(?P<start>[^}]*)\}|!(?P<mark>[^\s!<\[{]*)|<(?P<open>[^\s!<\[{]*)"
)


@dataclass(frozen=True)
class Drawn:
    """One thing in a picture; columns count from 0."""

    process: str
    thread: str
    domain: str | None
    kind: str
    name: str
    first: int
    last: int
    task: str | None = None
    counter: str | None = None


def draw(picture: str) -> list[Drawn]:
    """Read a picture, but for its rows of CUDA and the CPU side.

    Raises ValueError for a line without a `|`.
    """
    return [item for item in _read(picture) if isinstance(item, Drawn)]


def _read(picture: str) -> list[Drawn | Op | Happening]:
    drawn: list[Drawn | Op | Happening] = []
    lines = [line for line in picture.splitlines() if line.strip()]
    width = max((len(line.partition("|")[2]) for line in lines), default=0)
    for line in lines:
        head, bar, track = line.partition("|")
        if not bar:
            raise ValueError(f"a line of a timeline is `thread |picture`: {line!r}")
        process, slash, thread = head.strip().rpartition("/")
        if (ops := cuda_pictures.read(process if slash else "", thread, track)) is not None:
            drawn += ops
            continue
        if (happenings := cpu_pictures.read(process if slash else "", thread, track)) is not None:
            drawn += happenings
            continue
        thread, _, domain = thread.partition("@")
        thread, _, counter = thread.partition("~")
        thread, _, task = thread.partition("#")
        for match in (_SAMPLE if counter else _PIECE).finditer(track):
            kind = str(match.lastgroup)
            name = match[kind].split(" ")[0]
            last = match.start() if kind in ("mark", "sample") else width if kind == "open" else match.end()
            own = (process if slash else "", thread, domain or None)
            drawn.append(
                Drawn(
                    *own,
                    kind=kind,
                    name=name,
                    first=match.start(),
                    last=last,
                    task=task or None,
                    counter=counter or None,
                )
            )
    return drawn


def timeline(
    path: str | os.PathLike[str],
    picture: str,
    *,
    tick_ns: int = 1_000,
    origin: int = 1_000_000_000,
    part: str = "host-100-1",
    host: str = "host",
    boot_id: str = "boot",
    job: str | None = None,
    realtime_offset: int = 0,
    command: Sequence[str] = ("python", "train.py"),
    exit_status: int | None = 0,
    ranks: Mapping[str, int] | None = None,
    diagnostics: Sequence[Mapping[str, Any]] = (),
    extra: _Extra | None = None,
    tasks: _Extra | None = None,
    counters: _Extra | None = None,
    payloads: Mapping[str, Sequence[Any]] | None = None,
    end_payloads: Mapping[str, Sequence[Any]] | None = None,
    tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    cuda: _Extra | None = None,
    cpu: _Extra | None = None,
    main: str = "",
) -> Manifest:
    """Write the drawn ranges and marks as a part of the report directory `path`.

    Returns its manifest.

    `tick_ns`: ns per column; column 0 is `origin`. `ranks`: process -> rank. `diagnostics`: rows of that table.
    `extra`: range name -> columns to set, such as `{"step": {"color": 0xFF0000, "payload_int": 3, "category": "io"}}`; `tasks` and
    `counters` do the same for those. `payloads`: name of ranges or marks -> what the first, second, … of them carry (the last
    repeats), written as JSON; `end_payloads`: the same, given at the end. `tables`: more rows, as they are.
    `cuda`, `cpu`: columns of their rows. `main`: the name of the threads that are the main ones of their processes.
    """
    read = _read(picture)
    everything = [item for item in read if isinstance(item, Drawn)]
    ops = [item for item in read if isinstance(item, Op)]
    happenings = [item for item in read if isinstance(item, Happening)]
    drawn = [item for item in everything if item.thread != _WINDOWS]
    shown = [item for item in read if item.thread != _WINDOWS]
    report = Path(path)
    first = _next_part(report, part) << 16
    processes = list(dict.fromkeys(item.process for item in shown)) or [""]
    threads = list(dict.fromkeys((item.process, item.thread) for item in shown if item.thread is not None))
    keys = {name: first + number for number, name in enumerate(processes)}
    numbers = {name: [thread for process, thread in threads if process == name] for name in processes}
    thread_keys = {(p, t): keys[p] * THREADS_PER_PROCESS + numbers[p].index(t) for p, t in threads}
    end = origin + max((item.last for item in shown), default=0) * tick_ns
    times = {"start": origin, "end": end, "host": host}
    sources = {"nvtx": {"on": True}, **({"cuda": {"on": True}} if ops else {})}
    facts = Facts(
        part,
        host,
        boot_id,
        job=job,
        command=list(command),
        origin=origin,
        end=end,
        realtime_offset=realtime_offset,
        exit_status=exit_status,
        sources=sources,
    )
    rows_processes = [
        {
            **times,
            "process": keys[name],
            "pid": 100 + number,
            "parent": None if number == 0 else first,
            "parent_pid": 1 if number == 0 else 100,
            "rank": (ranks or {}).get(name),
            "executable": command[0],
            "command": " ".join(command),
            "primary": number == 0,
            "exit_status": exit_status if number == 0 else None,
            "exited": True,
        }
        for number, name in enumerate(processes)
    ]
    rows_threads = [
        {
            "thread": key,
            "process": keys[p],
            "tid": 100 + processes.index(p) if t == main != "" else 1000 + index,
            "name": t,
            "start": origin,
        }
        for index, ((p, t), key) in enumerate(thread_keys.items())
    ]
    task_keys = _numbered(drawn, keys, "task", most=_TASKS_PER_PROCESS)
    rows_tasks = [
        {
            "task": key,
            "process": keys[process],
            "thread": next(
                thread_keys[i.process, i.thread] for i in drawn if (i.process, i.task) == (process, name)
            ),
            "name": name,
            "library": "asyncio",
            "start": origin + min(i.first for i in drawn if (i.process, i.task) == (process, name)) * tick_ns,
            **(tasks or {}).get(name or "", {}),
        }
        for (process, _, name), key in task_keys.items()
    ]
    common = [
        (
            item,
            _labels(item, keys, thread_keys, tasks=task_keys, origin=origin, tick=tick_ns, extra=extra or {}),
        )
        for item in drawn
        if not item.counter
    ]
    ranges = _ranges([(item, row) for item, row in common if item.kind != "mark"], origin, tick_ns)
    windows = _windows(
        [item for item in everything if item.thread == _WINDOWS], first >> 16, facts, tick=tick_ns
    )
    for row in ranges:
        row["clipped"] = any(_crosses(row, window) for window in windows)
    marks = _identified([row for item, row in common if item.kind == "mark"])
    carried = [
        *_payloads("range", ranges, payloads or {}, at_end=False),
        *_payloads("range", ranges, end_payloads or {}, at_end=True),
        *_payloads("mark", marks, payloads or {}, at_end=False),
    ]
    rows_counters, samples = _counters(
        drawn, keys, thread_keys, origin=origin, tick=tick_ns, extra=counters or {}
    )
    more = {name: list(rows) for name, rows in (tables or {}).items()}
    scenes = [
        Scene(keys, thread_keys, ranges, origin=origin, tick=tick_ns, host=host, extra=columns or {})
        for columns in (cuda, cpu)
    ]
    for name, rows in {
        **cuda_pictures.rows(ops, scenes[0]),
        **cpu_pictures.rows(happenings, scenes[1]),
    }.items():
        more[name] = rows + more.get(name, [])
    return write_part(
        report,
        facts,
        {
            "processes": rows_processes,
            "threads": rows_threads,
            "capture_windows": windows,
            "nvtx_ranges": ranges,
            "nvtx_marks": marks,
            "tasks": rows_tasks,
            "payloads": sorted(
                carried + more.pop("payloads", []),
                key=lambda row: (row["process"], row["event_type"], row["event"]),
            ),
            "nvtx_counters": rows_counters,
            "nvtx_counter_samples": samples,
            "diagnostics": list(diagnostics),
            "targets": [{"host": host, "boot_id": boot_id, **_MACHINE}],
            **more,
        },
    )


def _windows(drawn: list[Drawn], part: int, facts: Facts, tick: int) -> list[dict[str, Any]]:
    spans = [(facts.origin + item.first * tick, facts.origin + item.last * tick, item.name) for item in drawn]
    return [
        {
            "part": part,
            "number": number,
            "host": facts.host,
            "start": begin,
            "end": end,
            "opened_by": cause,
            "closed_by": "end" if cause == "start" else cause,
        }
        for number, (begin, end, cause) in enumerate(spans or [(facts.origin, facts.end, "start")], 1)
    ]


def _crosses(row: Mapping[str, Any], window: Mapping[str, Any]) -> bool:
    begin, end = window["start"], window["end"]
    return bool(row["start"] < end and row["end"] > begin and (row["start"] < begin or row["end"] > end))


def _labels(
    item: Drawn,
    keys: Mapping[str, int],
    threads: Mapping[tuple[str, str], int],
    tasks: Mapping[_Named, int],
    origin: int,
    tick: int,
    extra: _Extra,
) -> dict[str, Any]:
    return {
        "process": keys[item.process],
        "thread": threads[item.process, item.thread],
        "task": tasks[item.process, None, item.task] if item.task else None,
        "start": origin + item.first * tick,
        "domain": item.domain,
        "message": item.name or None,
        **extra.get(item.name, {}),
    }


def _ranges(items: list[tuple[Drawn, dict[str, Any]]], origin: int, tick: int) -> list[dict[str, Any]]:
    items.sort(key=lambda pair: (pair[1]["process"], pair[1]["start"], -pair[0].last))
    rows = []
    counts: dict[int, int] = {}
    for item, row in items:
        process = row["process"]
        counts[process] = counts.get(process, -1) + 1
        flags = {"unfinished": item.kind == "open", "inherited": False, "clipped": False}
        style = "StartEnd" if item.kind == "start" else "PushPop"
        key = process * RANGES_PER_PROCESS + counts[process]
        rows.append({"id": key, **row, "end": origin + item.last * tick, "style": style, **flags})
    for process in counts:
        own = [row for row in rows if row["process"] == process]
        _place([row for row in own if row["style"] == "PushPop" and row["task"] is None], nested=True)
        _place([row for row in own if row["style"] == "StartEnd" and row["task"] is None], nested=False)
        for task in dict.fromkeys(row["task"] for row in own if row["task"] is not None):
            _place([row for row in own if row["task"] == task], nested=True)
    return rows


def _place(rows: list[dict[str, Any]], *, nested: bool) -> None:
    start = np.array([row["start"] for row in rows], np.int64)
    end = np.array([row["end"] for row in rows], np.int64)
    if nested:
        # a task is one stack, whichever threads it runs on
        owner = np.array([row["thread"] if row["task"] is None else 0 for row in rows], np.int64)
        depth, parent = native.nest(owner, start, end)
        for row, lane, above in zip(rows, depth.tolist(), parent.tolist(), strict=True):
            row["depth"], row["parent"] = lane, None if above < 0 else rows[above]["id"]
        return
    for row, lane in zip(rows, native.lanes(start, end).tolist(), strict=True):
        row["depth"], row["parent"] = lane, None


_Named = tuple[str, str | None, str | None]  # process, domain, name


def _numbered(drawn: Sequence[Drawn], keys: Mapping[str, int], what: str, most: int) -> dict[_Named, int]:
    """Number the tasks or counters of each process, in the order in which they are drawn."""
    numbers: dict[_Named, int] = {}
    counts: dict[str, int] = {}
    for item in drawn:
        name = getattr(item, what)
        key = (item.process, item.domain if what == "counter" else None, name)
        if name and key not in numbers:
            counts[item.process] = counts.get(item.process, -1) + 1
            numbers[key] = keys[item.process] * most + counts[item.process]
    return numbers


def _identified(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort rows and give them ids within their process."""
    rows.sort(key=lambda row: (row["process"], row["start"]))
    counts: dict[int, int] = {}
    for row in rows:
        counts[row["process"]] = counts.get(row["process"], -1) + 1
        row["id"] = row["process"] * RANGES_PER_PROCESS + counts[row["process"]]
    return rows


def _payloads(
    kind: str, rows: list[dict[str, Any]], given: Mapping[str, Sequence[Any]], *, at_end: bool
) -> list[dict[str, Any]]:
    payloads = []
    seen: dict[str, int] = {}
    for row in rows:
        values = given.get(row["message"] or "")
        if not values:
            continue
        number = seen[row["message"]] = seen.get(row["message"], -1) + 1
        about = {
            "process": row["process"],
            "event_type": kind,
            "event": row["id"],
            "type": "json",
            "at_end": at_end,
            "cut": False,
        }
        payloads.append({**about, "json": json.dumps(values[min(number, len(values) - 1)])})
    return payloads


def _counters(
    drawn: Sequence[Drawn],
    keys: Mapping[str, int],
    threads: Mapping[tuple[str, str], int],
    origin: int,
    tick: int,
    extra: _Extra,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the counters and their samples.

    A counter with a decimal point anywhere is a float64.
    """
    numbers = _numbered(drawn, keys, "counter", most=_COUNTERS_PER_PROCESS)
    counters, samples = [], []
    for (process, domain, name), key in numbers.items():
        own = [item for item in drawn if (item.process, item.domain, item.counter) == (process, domain, name)]
        real = any("." in item.name for item in own)
        about = {
            "process": keys[process],
            "domain": domain,
            "id": key & 0xFFFFFFFF,
            "name": name,
            "type": "float64" if real else "int64",
        }
        counters.append({"counter": key, **about, **extra.get(name or "", {})})
        for item in own:
            value = (
                {"no_value": "unavailable"}
                if item.name == "?"
                else {"value_float": float(item.name)}
                if real
                else {"value_int": int(item.name)}
            )
            place = {"process": keys[process], "thread": threads[process, item.thread], "counter": key}
            samples.append({**place, "start": origin + item.first * tick, **value})
    return counters, _identified(samples)


def _next_part(report: Path, part: str) -> int:
    """The number that the writer will claim: parts of a drawn report are written one after the other."""
    claimed = sorted((report / "manifest.d").glob("part-*"), key=lambda path: int(path.name[5:]))
    for path in claimed:
        if path.read_text(encoding="utf-8").strip() == f"{part}.json":
            return int(path.name[5:])
    return len(claimed)
