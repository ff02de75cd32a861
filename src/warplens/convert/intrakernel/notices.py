"""Notes about kernels that time themselves: losses, the accuracy of their times, and advice."""

from __future__ import annotations

import numpy as np

from warplens.convert.intrakernel import merging
from warplens.convert.intrakernel.launches import Launches
from warplens.convert.intrakernel.merging import Merged
from warplens.convert.intrakernel.tally import Tally
from warplens.model.words import counted, was
from warplens.spool.kernels import buffers as kernel_buffers
from warplens.spool.notes import Note

STORED = kernel_buffers.STORED
_SOURCE = "intrakernel"
_COARSE = 64  # ns: a timer that ticks more slowly is that of GPUs before Hopper
_ROUGH = 100_000  # ns: times that are off by more are hardly of use beside others

# What became of launches that were not stored: severity, code, text. `value` is the agent's.
_RESULTS = {
    0: (
        "warning",
        "intrakernel-not-read",
        "their buffers were never read, because the process was killed or its recording ended "
        "first; end it in an orderly way, or call "
        "store() or close() of the buffer sooner",
    ),
    kernel_buffers.UNREADABLE: (
        "warning",
        "intrakernel-unreadable",
        "their buffers could not be read (error {value}): the memory or its context was freed; call "
        "close() of a buffer before its memory is freed",
    ),
    kernel_buffers.NO_BUFFER: (
        "warning",
        "intrakernel-no-buffer",
        "the memory at their buffers' addresses was not a buffer (first word: {value:#x}): it was reused",
    ),
    kernel_buffers.LIMIT: (
        "warning",
        "intrakernel-limit",
        "{value:,} bytes of buffers were stored already, the limit per process: record fewer "
        "launches (a capture range), sample blocks, or use fewer slots",
    ),
    kernel_buffers.NO_SPACE: (
        "error",
        "intrakernel-no-space",
        "the spool could not take all that they wrote: name a directory with more room with "
        "--spool-dir, or allow more with --max-size",
    ),
    kernel_buffers.NOT_AWAITED: (
        "warning",
        "intrakernel-not-awaited",
        "their kernels did not end within a minute of being waited for",
    ),
    kernel_buffers.CHILD: (
        "info",
        "intrakernel-child",
        "they are of a fork child, which cannot use its parent's CUDA",
    ),
}


def notes(launches: Launches, merged: Merged, tally: Tally, has_kernels: bool, pid: int) -> list[Note]:
    """Return the notes about the launches of a process.

    `has_kernels`: kernels were recorded there.
    """
    where = f"process {pid}"
    return [
        *_unread(launches, where),
        *_work(launches, where),
        *_lost(launches, tally, where),
        *_exactness(launches, merged, has_kernels, where=where),
    ]


def _unread(launches: Launches, where: str) -> list[Note]:
    notes = []
    result, value = launches.result, launches.of_read("value")
    for number, (severity, code, text) in _RESULTS.items():
        mine = np.flatnonzero(result == number)
        if len(mine):
            message = (
                f"{counted(len(mine), 'in-kernel launch')} of {where} missing or incomplete: "
                f"{text.format(value=int(value[mine[-1]]))}"
            )
            notes.append(Note(severity, code, _SOURCE, message=message, count=len(mine)))
    return notes


def _work(launches: Launches, where: str) -> list[Note]:
    """Say what reading took of the program's time: it waits for kernels that it would not have waited for."""
    taken, stored = launches.of_read("end") - launches.of_read("asked"), launches.of_read("bytes")
    read = launches.read >= 0
    if not stored.any():
        return []
    spent = int(taken[read].clip(0).sum()) / 1e6
    message = (
        f"reading {counted(int(read.sum()), 'in-kernel launch')} of {where} took {spent:,.1f} ms of "
        "its time, waiting for their kernels included, "
        f"and {counted(int(stored.sum()), 'byte')} of the spool; these copies are not in the tables of CUDA"
    )
    return [Note("info", "intrakernel-read", _SOURCE, message=message, count=int(read.sum()))]


def _lost(launches: Launches, tally: Tally, where: str) -> list[Note]:
    notes = []
    dropped = int(tally.dropped.sum())
    if dropped:
        hit = np.flatnonzero(tally.dropped)
        needed = int(tally.needed[hit].max())
        message = (
            f"{counted(dropped, 'in-kernel record')} of {counted(len(hit), 'launch')} of "
            f"{where} found no slot; slots={needed} would have held all"
        )
        notes.append(Note("warning", "intrakernel-dropped", _SOURCE, message=message, count=dropped))
    units = tally.units_lost(launches)
    if units.any():
        room = int((launches.of_read("room") + units).max())
        message = (
            f"{counted(int(units.sum()), 'warp')} of {where} found no place in the buffer; "
            f"units={room} would have held all"
        )
        notes.append(
            Note("warning", "intrakernel-units-lost", _SOURCE, message=message, count=int(units.sum()))
        )
    if tally.unended.any():
        count = int(tally.unended.sum())
        message = (
            f"{counted(count, 'warp')} of {where} left the kernel without finish(): the last "
            "records may be missing"
        )
        notes.append(Note("info", "intrakernel-unended", _SOURCE, message=message, count=count))
    if tally.surplus:
        message = (
            f"{counted(tally.surplus, 'in-kernel event')} of {where} came after the requested "
            f"ones (keep=) and {was(tally.surplus)} left out"
        )
        notes.append(Note("info", "intrakernel-keep", _SOURCE, message=message, count=tally.surplus))
    if tally.garbled:
        message = (
            f"{counted(tally.garbled, 'in-kernel record')} of {where} cannot belong to the launch "
            f"and {was(tally.garbled)} left out"
        )
        notes.append(Note("warning", "intrakernel-garbled", _SOURCE, message=message, count=tally.garbled))
    if tally.broken:
        message = (
            f"{tally.broken:,} chunks of in-kernel buffers of {where} are damaged or were dropped "
            "(--keep-last)"
        )
        notes.append(Note("warning", "intrakernel-damaged", _SOURCE, message=message, count=tally.broken))
    return notes


def _exactness(launches: Launches, merged: Merged, has_kernels: bool, where: str) -> list[Note]:
    notes = []
    count = {how: int((merged.how == how).sum()) for how in (merging.KERNEL, merging.NEIGHBOURS)}
    if count[merging.KERNEL]:
        mine = merged.how == merging.KERNEL
        typical, worst = int(np.median(merged.uncertainty[mine])), int(merged.uncertainty[mine].max())
        message = (
            f"{counted(count[merging.KERNEL], 'in-kernel launch')} of {where} matched a kernel; times are off "
            f"by {typical:,} ns (at worst {worst:,} ns)"
        )
        notes.append(
            Note("info", "intrakernel-merged", _SOURCE, message=message, count=count[merging.KERNEL])
        )
    if count[merging.NEIGHBOURS]:
        message = (
            f"{counted(int(count[merging.NEIGHBOURS]), 'in-kernel launch')} of {where} without a "
            "certain kernel (graphs recorded as a whole, launches by another thread, several kernels "
            "in one launch, or kernels that were not recorded): their times come from neighbouring "
            "launches"
        )
        notes.append(
            Note("info", "intrakernel-unmatched", _SOURCE, message=message, count=count[merging.NEIGHBOURS])
        )
    bracket, on_device = merged.how == merging.BRACKET, launches.noted["device"] >= 0
    why = "none of its kernels fits" if has_kernels else "no kernels were recorded there"
    for mine, reason in ((bracket & on_device, why), (bracket & ~on_device, "they ran on the CPU")):
        if mine.any():
            off = merged.uncertainty[mine]
            rough = int(np.median(off)) > _ROUGH and reason == why
            message = (
                f"{counted(len(off), 'in-kernel launch')} of {where} got the host's times of launch and wait, "
                f"because {reason}: times are off by {int(np.median(off)):,} ns (at worst "
                f"{int(off.max()):,} ns); within one launch they are exact"
            )
            notes.append(
                Note(
                    "warning" if rough else "info",
                    "intrakernel-bracketed",
                    _SOURCE,
                    message=message,
                    count=len(off),
                )
            )
    if merged.odd:
        message = (
            f"{counted(merged.odd, 'in-kernel launch')} of {where} {was(merged.odd)} at times "
            f"that contradict all others, and {was(merged.odd)} left unmatched"
        )
        notes.append(Note("warning", "intrakernel-odd", _SOURCE, message=message, count=merged.odd))
    for device, step in merged.ticks.items():
        if step > _COARSE and device >= 0:
            message = (
                f"the timer of GPU {device} in {where} ticks every {step:,} ns: shorter regions "
                "need clock='clock'"
            )
            notes.append(Note("info", "intrakernel-coarse", _SOURCE, message=message))
    return notes
