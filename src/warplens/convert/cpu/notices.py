"""Notes about the recording of the CPU side, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from warplens.convert.cpu.opcodes import NOTICE as OPCODE
from warplens.convert.cpu.os_words import ERRORS
from warplens.convert.place import Tally
from warplens.spool.notes import Note
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

Noticed = tuple[int, str, int, int]  # number, name, value, ns

_MOST = 1 << 12  # notices of a process; more is damage
_LATEST = 1 << 62


@dataclass(frozen=True)
class _Notice:
    """`text` has places for the `value`, the `name`, and `where`: the process.

    `sums`: values of the same notice are added up.
    """

    severity: str
    code: str
    text: str
    value: Callable[[int], str] = lambda value: f"{value:,}"
    nameless: str = "it"
    sums: bool = False


def _error(value: int) -> str:
    return ERRORS.get(abs(value), f"error {value}")


_PERF = (
    "`sysctl kernel.perf_event_paranoid=2` allows it, in a container `docker run --cap-add "
    "PERFMON`; `warplens doctor` says which"
)
_NOTICES = {
    1: _Notice(
        "info",
        "python-found",
        "{where} runs Python {name}{value}",
        value=lambda value: " without a GIL" if value == 1 else "",
        nameless="of a version that is not known",
    ),
    2: _Notice(
        "warning",
        "python-unknown",
        "{where} has no Python stacks: this version of warplens does not know the layout of Python "
        "{name}; native stacks and everything else were recorded",
        nameless="of its version",
    ),
    3: _Notice(
        "warning",
        "python-denied",
        "{where} has no Python stacks: its memory cannot be read ({value}) by process_vm_readv or "
        "through /proc/self/mem; allow one of them in its seccomp profile",
        value=_error,
    ),
    4: _Notice(
        "info",
        "torn-stacks",
        "{value} Python stacks of {where} were dropped because they changed while they were read",
        sums=True,
    ),
    5: _Notice(
        "info",
        "sampling-slowed",
        "sampling of {where} was made rarer, {value} Hz, because it took too much CPU; "
        "--python-sampling-frequency asks for less",
    ),
    6: _Notice(
        "info",
        "ticks",
        "{value} ticks of the {name} sampler were due in {where}",
        nameless="Python",
        sums=True,
    ),
    7: _Notice(
        "info",
        "missed-ticks",
        "{value} ticks of the sampler in {where} were late and dropped, because no CPU was free; "
        "shares are still right",
        sums=True,
    ),
    8: _Notice(
        "warning",
        "perf-denied",
        "{name} is missing in {where}: perf_event_open was refused ({value}); " + _PERF,
        value=_error,
        nameless="native sampling",
    ),
    9: _Notice(
        "warning",
        "perf-lost",
        "{value} samples or switches of {where} were lost by the kernel, which had no room for "
        "them; --sampling-frequency asks for fewer",
        sums=True,
    ),
    10: _Notice(
        "info",
        "native-sampled",
        "native stacks of {where} were sampled by {name} at {value} Hz",
        nameless="a clock",
    ),
    11: _Notice(
        "info",
        "kernel-hidden",
        "time that {where} spent in the kernel is not among its native samples: `sysctl "
        "kernel.perf_event_paranoid=1` adds it",
    ),
    12: _Notice(
        "info",
        "backtrace-other",
        "{where} cannot use the requested --backtrace; instead: {name}",
        nameless="what this machine can do",
    ),
    13: _Notice(
        "info",
        "states-sampled",
        "thread states of {where} come from the scheduler's counters, read every {value} ns, "
        "because context switches could not be recorded: sums are right, edges are off by up to "
        "that interval; " + _PERF,
    ),
    14: _Notice(
        "warning",
        "gil-unknown",
        "the GIL of {where} was not recorded: Python {name} has none, or warplens does not find it",
        nameless="of its version",
    ),
    15: _Notice(
        "warning",
        "python-hooks",
        "Python's own events (collections, imports, functions) are missing or incomplete in {where}: {name}",
        nameless="no hook could be put in",
    ),
    16: _Notice(
        "warning",
        "function-not-found",
        "{name}, which --python-functions-trace names, was not found in {where}; is its module "
        "imported, and the name spelt right?",
        nameless="a function",
    ),
    17: _Notice(
        "warning",
        "os-calls-missing",
        "calls of the C library are missing in {where}: {name}",
        nameless="they cannot be seen",
    ),
    18: _Notice(
        "info",
        "stacks-read-again",
        "{value} Python stacks of {where} were impossible at first sight and read again",
        sums=True,
    ),
    19: _Notice(
        "info",
        "python-version",
        "{name}; {where} runs an older Python",
        nameless="a requested part cannot be recorded",
    ),
    23: _Notice(
        "info",
        "torch",
        "operators of PyTorch {name} were recorded in {where}",
        nameless="of a version that is not known",
    ),
    24: _Notice(
        "warning",
        "torch-unknown",
        "operators of PyTorch are missing in {where}: {name}; torch.profiler's traces can be imported",
        nameless="it is not known to this version of warplens",
    ),
    21: _Notice(
        "info",
        "locks-unknown",
        "waits of threads of {where} are missing: this version of warplens does not know how "
        "Python {name} waits without a GIL",
        nameless="of its version",
    ),
    20: _Notice(
        "info",
        "kernel-frames-hidden",
        "time of {where} in the kernel counts for the calling function, because the kernel hides the "
        "addresses of its functions; "
        "`sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1` adds them",
    ),
}


def read(records: WideRecords | None, strings: Strings) -> Iterator[Noticed]:
    """Return what the agent noted in a process."""
    for row in records.rows(records.offsets()[:_MOST]) if records is not None else ():
        yield int(row["notice"]), strings.get(int(row["name"])) or "", int(row["value"]), int(row["start"])


def notes(noticed: Iterable[Noticed], pid: int) -> list[Note]:
    """Return what the agent noted as sentences.

    Repeated notes become one, with the last value or the sum.
    """
    counts: dict[tuple[int, str], tuple[int, int, int]] = {}
    for number, name, value, start in noticed:
        if number == OPCODE:
            continue  # a name, not something that happened
        count, first, before = counts.get((number, name), (0, start, 0))
        sums = number in _NOTICES and _NOTICES[number].sums
        counts[number, name] = (count + 1, first, before + value if sums else value)
    told = []
    for (number, name), (count, first, value) in counts.items():
        where = f"process {pid}"
        notice = _NOTICES.get(number)
        if notice is None:
            message = f"{where} has a notice that this version of warplens cannot explain: CPU notice {number}, {value} {name}".rstrip()
            notice = _Notice("info", "cpu-notice", "")
        else:
            message = notice.text.format(value=notice.value(value), name=name or notice.nameless, where=where)
        times = max(min(value, _LATEST), 0) if notice.sums else count if count > 1 else None
        told.append(
            Note(
                notice.severity,
                notice.code,
                "cpu",
                message=message,
                count=times,
                time=first if 0 < first <= _LATEST else None,
            )
        )
    return told


def odd(tally: Tally, broken: int, lost: int, pid: int) -> list[Note]:
    """Return what was met that could not be used.

    `broken`: frames; `lost`: rows whose stack was not written.
    """
    losses = [
        (tally.damaged, "damaged-records", "records of the CPU side with impossible times were left out"),
        (broken, "damaged-frames", "frames of stacks could not be used, or do not know their caller"),
        (lost, "lost-stacks", "samples or calls have no stack because it was not written"),
    ]
    return [
        Note("warning", code, "cpu", message=f"{count:,} {what} (process {pid})", count=min(count, _LATEST))
        for count, code, what in losses
        if count
    ]
