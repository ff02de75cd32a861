"""Lists the data that a process could not record, and the recorded data that could not be read."""

from __future__ import annotations

import errno
import os

from warplens.model.words import counted, duration, was
from warplens.spool.events import EventCounts
from warplens.spool.layout import Head, Layouts
from warplens.spool.notes import Note
from warplens.spool.process import Process

_LATEST = 1 << 62
_LONGEST_NAME = 32768
_MORE_ROOM = "; name a directory with more room with --spool-dir"
_MAX_SIZE = 4096  # kMaxSizeReached in format.h, in the place of an errno
_LIMITS = {
    "domain records": "there were more domains than a process can have (65,534)",
    "range records": "ranges were nested deeper than can be kept",
}
_HINTS = {
    errno.ENOSPC: _MORE_ROOM,
    errno.EDQUOT: _MORE_ROOM,
    errno.EFBIG: "; raise the program's `ulimit -f`",
    errno.EMFILE: "; raise the program's `ulimit -n`",
    errno.ENOMEM: "; raise the program's `ulimit -v`",
    _MAX_SIZE: "; allow more, or record less: one window (--duration, -c), fewer domains "
    "(--nvtx-domain-include)",
}
# Slots of `dropped` that count what is no record (format.h): severity, code, what.
_SLOTS = {
    26: (
        "warning",
        "foreign-clock",
        "samples or events have times of a clock that nothing ties to ours; they stand at their call",
    ),
    27: (
        "warning",
        "undecoded-events",
        "deferred events have no kind and time; they became marks at their call",
    ),
    28: (
        "error",
        "lost-payloads",
        "payloads were lost: they could not be written, or could not be read from the program's memory",
    ),
    29: (
        "warning",
        "cut-payloads",
        "payloads are incomplete: they were longer than 1 MiB, or pointed at unreadable memory",
    ),
    30: (
        "warning",
        "in-signal-handler",
        "NVTX calls were lost that signal handlers made while NVTX was busy",
    ),
    31: ("warning", "cut-names", f"names longer than {_LONGEST_NAME:,} bytes were cut there"),
}
# The same of CUPTI.
_CUPTI = {
    56: (
        "error",
        "cupti-dropped",
        "records were dropped by CUPTI, which had no buffer for them; ask for them more often "
        "(--cuda-flush-interval) or record less",
    ),
    57: ("warning", "cupti-invalid", "records of GPU work were left out: CUPTI gave them no usable times"),
    58: (
        "warning",
        "cupti-unfinished",
        "GPU operations had not ended at the end of the recording; they are missing",
    ),
    59: (
        "info",
        "cupti-unknown",
        "CUPTI records that warplens had not requested were left out: another tool in the process did",
    ),
    60: ("info", "cupti-repeated", "records came from CUPTI twice; each is here once"),
}
_LOST_WORK = (56, 57, 58)
# What the records of wide chunks are called.
_WIDE = {
    "cuda_api": "CUDA API calls",
    "cuda_kernel": "kernels",
    "cuda_memcpy": "memory copies",
    "cuda_memset": "memory sets",
    "cuda_sync": "CUDA synchronisations",
    "cuda_event": "CUDA event records",
    "cuda_graph": "graph launches",
    "cuda_memory": "GPU memory operations",
    "cuda_um": "unified memory events",
    "cuda_overhead": "overhead records",
    "cuda_external": "external correlation ids",
    "cpu_frame": "frames of stacks",
    "cpu_sample": "samples",
    "cpu_state": "thread states",
    "os_call": "OS calls",
    "gil": "holds of the GIL and waits for it",
    "python_span": "Python calls, imports and collections",
    "intrakernel_launch": "in-kernel launches",
    "intrakernel_read": "records of kernels, or chunks of them,",
}


def dropped(head: Head, layouts: Layouts, process: Process) -> list[Note]:
    """The records that the agent counted as lost."""
    if not (head.error or head.buffered or any(head.dropped)):
        return []
    notes = []
    pid = process.pid
    when = _from_to(head.first_loss_ns, head.last_loss_ns, process)
    losses = [(head.dropped[0], "strings (their ranges have no name)")]
    losses += [
        (head.dropped[number], f"{name} records")
        for name, number in layouts.ids.items()
        if number < min(_SLOTS)
    ]
    every = [("nvtx", *loss) for loss in losses]
    for id_, (name, _) in layouts.wide.items():
        if id_ not in _CUPTI and name != "cpu_notice":
            every.append((_source(name), head.dropped[id_], _WIDE.get(name, f"{name} records")))
    reason = (
        f": {os.strerror(head.error)}"
        if 0 < head.error < _MAX_SIZE
        else ": --max-size reached"
        if head.error == _MAX_SIZE
        else ""
    )
    for source, count, what in every:
        if count:
            because = f"the spool could not grow{reason}{_HINTS.get(head.error, '')}"
            if not head.error:
                because = _LIMITS.get(what, because)
            message = f"{count:,} {what} of process {pid} were dropped{when} because {because}"
            notes.append(
                Note(
                    "error",
                    "dropped-records",
                    source,
                    message=message,
                    count=min(count, _LATEST),
                    time=_time(head.first_loss_ns),
                )
            )
    if head.error and not any(count for _, count, _ in every):
        message = f"the spool of process {pid} could not grow at some time{reason}; nothing was dropped"
        notes.append(Note("info", "spool-error", "nvtx", message=message))
    if head.buffered:
        notes.append(_buffered(head, pid))
    for source, slots in (("nvtx", _SLOTS), ("cuda", _CUPTI)):
        lost = [(head.dropped[slot], *loss) for slot, loss in slots.items() if head.dropped[slot]]
        notes += [
            _note(severity, code, count, what=what, pid=pid, source=source)
            for count, severity, code, what in lost
        ]
    return notes


def given_up(head: Head, process: Process) -> list[Note]:
    """Records that a flight recorder overwrote: too old ones, and newer ones for lack of room."""
    if not head.given_up_ns:
        return []
    until = _after(head.given_up_ns, process)
    message = (
        f"{counted(head.given_up, 'record')} of process {process.pid} {was(head.given_up)} "
        f"given up, the last of them {until}: --keep-last keeps only later records"
    )
    notes = [
        Note(
            "info",
            "given-up",
            "spool",
            message=message,
            count=min(head.given_up, _LATEST),
            time=_time(head.given_up_ns),
        )
    ]
    if head.early_ns:
        message = (
            f"there was no room for all that --keep-last asks for: of process {process.pid} all "
            "records are here only from "
            f"{_after(head.early_ns, process)} on; allow more with --max-size, or free some of the disk"
        )
        notes.append(
            Note("warning", "kept-less", "spool", message=message, count=None, time=_time(head.early_ns))
        )
    return notes


def _from_to(first: int, last: int, process: Process) -> str:
    if not _time(first) or not process.start_ns:  # of an agent that did not note it
        return ""
    begin = duration(max(first - process.start_ns, 0))
    return f" from {begin} to {_after(max(first, last), process)}"


def _after(time_ns: int, process: Process) -> str:
    return f"{duration(max(time_ns - process.start_ns, 0))} after it began to be recorded"


def _time(time_ns: int) -> int | None:
    return time_ns if 0 < time_ns < _LATEST else None


def _source(name: str) -> str:
    return next((source for source in ("cuda", "intrakernel") if name.startswith(f"{source}_")), "cpu")


def _buffered(head: Head, pid: int) -> Note:
    where = (
        f"process {pid} was recorded without reservation of space, which the file system of its "
        "spool directory cannot promise"
    )
    if head.end_ns:
        return Note(
            "info",
            "not-reserved",
            "spool",
            message=f"{where}; it ended in an orderly way, and nothing is missing because of that",
        )
    lost = (
        "it did not end in an orderly way: up to the last 0.1 s may be missing; name a local "
        "directory with --spool-dir"
    )
    return Note("warning", "not-reserved", "spool", message=f"{where}, and {lost}")


def work(head: Head, layouts: Layouts) -> int:
    """Return how many records of GPU work are known to be lost."""
    kinds = ("cuda_kernel", "cuda_memcpy", "cuda_memset", "cuda_graph")
    lost = sum(
        head.dropped[id_] for id_, (name, _) in layouts.wide.items() if name in kinds and id_ < min(_CUPTI)
    )
    return lost + sum(head.dropped[slot] for slot in _LOST_WORK)


def calls(head: Head, layouts: Layouts) -> int:
    """Return how many calls of CUDA are known to be lost."""
    return sum(head.dropped[id_] for id_, (name, _) in layouts.wide.items() if name == "cuda_api")


def unread(
    counts: EventCounts, unknown_records: int, broken_definitions: int, pid: int, *, recorder: bool = False
) -> list[Note]:
    """Records that the reader could not use.

    `recorder`: the spool was filled anew, with --keep-last.
    """
    blobs = (
        (
            counts.damaged_blobs,
            "old-payloads",
            "payloads are missing: their ranges began before the time that --keep-last kept",
        )
        if recorder
        else (
            counts.damaged_blobs,
            "damaged-payloads",
            "payloads were left out: their references point elsewhere",
        )
    )
    counted = [
        (counts.damaged, "damaged-records", "records with impossible times were left out"),
        (counts.backwards, "negative-duration", "ranges ended before they began; they have no duration"),
        (counts.lost_names, "lost-names", "ranges or marks have no name because the string was not written"),
        (counts.lost_parents, "lost-parents", "ranges name a parent that was not recorded; they have none"),
        blobs,
        (
            unknown_records,
            "unknown-records",
            "records of a type unknown to this version of warplens were left out",
        ),
        (
            broken_definitions,
            "broken-definitions",
            "definitions of schemas, counters, tasks or objects could not be read",
        ),
    ]
    return [_note("warning", code, count, what=what, pid=pid) for count, code, what in counted if count]


def _note(severity: str, code: str, count: int, what: str, pid: int, source: str = "nvtx") -> Note:
    return Note(severity, code, source, message=f"{count} {what} (process {pid})", count=min(count, _LATEST))
