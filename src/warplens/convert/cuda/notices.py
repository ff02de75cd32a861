"""Notes about the recording of CUDA itself, as sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warplens.convert.place import Tally
from warplens.model.words import counted, was
from warplens.spool.notes import Note
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

_MOST = 1 << 12  # notices of a process; more is damage
_LATEST = 1 << 62


@dataclass(frozen=True)
class _Notice:
    """`text` has places for the `value`, the `name`, and `where`: the process."""

    severity: str
    code: str
    text: str
    value: Callable[[int], str] = str
    nameless: str = "it"


def _ms(value: int) -> str:
    return f"{value / 1e6:,.3f} ms" if abs(value) >= 1_000_000 else f"{value:,} ns"


def cupti_version(number: int) -> str:
    """Return CUPTI's number of its version as people write it: 130001 is 13.0 (130001).

    Older ones have no more than a number.
    """
    return (
        f"CUPTI {number // 10_000}.{number // 100 % 100} ({number})"
        if number >= 10_000
        else f"CUPTI {number}"
    )


def cuda_version(number: int) -> str:
    """Return CUDA's number of a version as people write it: 13000 is 13.0."""
    return f"{number // 1000}.{number // 10 % 100}"


_NOTICES = {
    1: _Notice(
        "info",
        "cuda-recorded",
        "CUDA was recorded in {where} with {value}, {name}",
        value=cupti_version,
        nameless="of a place that is not known",
    ),
    2: _Notice(
        "info", "cuda-driver", "the driver of {where} supports CUDA up to {value}", value=cuda_version
    ),
    3: _Notice(
        "warning",
        "no-cupti",
        "CUDA was not recorded in {where}: no CUPTI matches the driver (CUDA {value}; searched: "
        "{name}); install "
        "nvidia-cuda-cupti of the driver's CUDA version into the program's environment, or name "
        "the library with --cupti",
        value=cuda_version,
        nameless="the usual places",
    ),
    4: _Notice(
        "warning",
        "cupti-busy",
        "CUDA was not recorded in {where}: another tool has CUPTI ({name}; error {value}), and "
        "only one can on CUDA before 13.3; "
        "everything else was recorded. Run without that tool, or with --trace=nvtx",
        nameless="torch.profiler, Proton, nsys, ncu or a sanitizer, say",
    ),
    5: _Notice(
        "warning",
        "cupti-failed",
        "CUDA was not recorded as asked in {where}: error {value} of {name}",
        nameless="CUPTI",
    ),
    6: _Notice(
        "warning",
        "cupti-stolen",
        "another tool in {where} (torch.profiler, Proton, …) took CUPTI's records: none arrived for "
        "{value}, not even for the recording's own test call. GPU work since then is missing; run "
        "without that tool",
        value=_ms,
    ),
    7: _Notice(
        "warning",
        "cupti-clock",
        "times of CUPTI in {where} are not on our clock, but off by {value}: {name}",
        value=_ms,
        nameless="GPU work and API calls may stand at wrong times beside everything else",
    ),
    8: _Notice(
        "info",
        "cupti-converted",
        "times of CUDA in {where} were moved to warplens's clock by an offset with an error of "
        "{value}, because the program used CUDA before the recording began",
        value=_ms,
    ),
    9: _Notice(
        "warning",
        "cupti-flush",
        "CUPTI did not deliver the last records of {where} within {value} ms: the last GPU work may "
        "be missing",
        value=lambda value: f"{value:,}",
    ),
    10: _Notice(
        "warning",
        "cupti-too-old",
        "{value}, which {where} has, lacks a requested feature: {name}",
        value=cupti_version,
    ),
    11: _Notice(
        "info",
        "cupti-gated",
        "CUDA was watched in {where} all the time, with its cost, and only the windows were kept: "
        "with {value}, turning it on again loses "
        "records",
        value=cupti_version,
    ),
    12: _Notice(
        "warning",
        "cupti-finalized",
        "CUPTI shut itself down in {where} after a fatal error of the program ({name}; error {value} "
        "of CUPTI): later records are missing",
        nameless="CUPTI does not say which",
    ),
}


def notes(records: WideRecords | None, strings: Strings, pid: int) -> list[Note]:
    """Return the agent's notes. Repeated notes become one, with the last value and the count."""
    tally_of: dict[tuple[int, str], tuple[int, int, int]] = {}
    rows = records.rows(records.offsets()[:_MOST]) if records is not None else ()
    for row in rows:
        key = (int(row["notice"]), strings.get(int(row["name"])) or "")
        count, first, _ = tally_of.get(key, (0, int(row["start"]), 0))
        tally_of[key] = (count + 1, first, int(row["value"]))
    told = []
    for (number, name), (count, first, value) in tally_of.items():
        where = f"process {pid}"
        notice = _NOTICES.get(number)
        if notice is None:
            message = f"{where} has a CUDA notice that this version of warplens cannot explain: notice {number}, {value} {name}".rstrip()
            notice = _Notice("info", "cuda-notice", "")
        else:
            message = notice.text.format(value=notice.value(value), name=name or notice.nameless, where=where)
        told.append(
            Note(
                notice.severity,
                notice.code,
                "cuda",
                message=message,
                count=count if count > 1 else None,
                time=first if 0 < first <= _LATEST else None,
            )
        )
    return told


def odd(tally: Tally, lost: int, backtraces: int, pid: int) -> list[Note]:
    """Return what was met that could not be used or looks wrong.

    `lost`: kernels without a name; `backtraces`: calls that wanted a stack and have none.
    """
    losses = []
    if tally.damaged:
        message = (
            f"{counted(tally.damaged, 'record')} of CUDA with impossible times "
            f"{was(tally.damaged)} left out (process {pid})"
        )
        losses.append(Note("warning", "damaged-records", "cuda", message=message, count=tally.damaged))
    if tally.early:
        message = (
            f"{tally.early:,} GPU operations began up to {_ms(tally.early_ns)} before their calls "
            f"(process {pid}): the GPU's times are wrong by at least that"
        )
        losses.append(Note("warning", "gpu-before-launch", "cuda", message=message, count=tally.early))
    if lost:
        message = f"{counted(lost, 'kernel')} of process {pid} without a name: the string was not written"
        losses.append(Note("warning", "lost-names", "cuda", message=message, count=lost))
    if backtraces:
        message = (
            f"{counted(backtraces, 'call')} of process {pid} {was(backtraces)} long enough for "
            "--cudabacktrace, "
            "but the stack could not be read"
        )
        losses.append(Note("info", "no-backtraces", "cuda", message=message, count=backtraces))
    return losses
