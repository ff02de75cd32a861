"""Says what a process could not record, and what of its recording could not be read."""

from __future__ import annotations

import errno
import os

from warpline.spool.events import Counts
from warpline.spool.layout import Head, Layouts
from warpline.spool.notes import Note

_LATEST = 1 << 62
_LONGEST_NAME = 32768
_MORE_ROOM = "; name a directory with more room with --spool-dir"
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
}
# Slots of `dropped` that count what is no record (format.h): severity, code, what.
_SLOTS = {
    26: ("warning", "foreign-clock", "samples or events have times of a clock that nothing ties to ours; they stand at their call"),
    27: ("warning", "undecoded-events", "deferred events do not say what they are or when; they are marks at their call"),
    28: ("error", "lost-payloads", "payloads were lost: they could not be written, or could not be read from the program's memory"),
    29: ("warning", "cut-payloads", "payloads are not whole: they were longer than 1 MiB, or pointed at what could not be read"),
    30: ("warning", "in-signal-handler", "NVTX calls were lost that signal handlers made while NVTX was busy"),
    31: ("warning", "cut-names", f"names longer than {_LONGEST_NAME:,} bytes were cut there"),
}


def dropped(head: Head, layouts: Layouts, pid: int) -> list[Note]:
    """What the agent counted as lost."""
    notes = []
    losses = [(head.dropped[0], "strings (their ranges have no name)")]
    losses += [(head.dropped[number], f"{name} records") for name, number in layouts.ids.items() if number < min(_SLOTS)]
    reason = f": {os.strerror(head.error)}" if 0 < head.error < 4096 else ""
    for count, what in losses:
        if count:
            because = f"the spool could not grow{reason}{_HINTS.get(head.error, '')}"
            if not head.error:
                because = _LIMITS.get(what, because)
            message = f"{count:,} {what} of process {pid} were dropped because {because}"
            notes.append(Note("error", "dropped-records", "nvtx", message, min(count, _LATEST)))
    if head.error and not any(count for count, _ in losses):
        message = f"the spool of process {pid} could not grow at some time{reason}; nothing was dropped"
        notes.append(Note("info", "spool-error", "nvtx", message))
    notes += [_note(severity, code, head.dropped[slot], what, pid) for slot, (severity, code, what) in _SLOTS.items() if head.dropped[slot]]
    return notes


def unread(counts: Counts, unknown_records: int, broken_definitions: int, pid: int) -> list[Note]:
    """What the reader met and could not use."""
    found = [
        (counts.damaged, "damaged-records", "records with impossible times were left out"),
        (counts.backwards, "negative-duration", "ranges ended before they began; they have no duration"),
        (counts.lost_names, "lost-names", "ranges or marks have no name because the string was not written"),
        (counts.lost_parents, "lost-parents", "ranges name a parent that was not recorded; they have none"),
        (counts.damaged_blobs, "damaged-payloads", "payloads were left out: what should point to them points elsewhere"),
        (unknown_records, "unknown-records", "records of a type unknown to this version of warpline were left out"),
        (broken_definitions, "broken-definitions", "definitions of schemas, counters, tasks or objects could not be read"),
    ]
    return [_note("warning", code, count, what, pid) for count, code, what in found if count]


def _note(severity: str, code: str, count: int, what: str, pid: int) -> Note:
    return Note(severity, code, "nvtx", f"{count} {what} (process {pid})", min(count, _LATEST))
