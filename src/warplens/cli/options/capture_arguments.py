"""The options that choose when and what to record, and how much of it to keep.

As they are typed, and their meaning. Without click.
"""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Mapping
from dataclasses import replace

from warplens.cli.options import cpu_arguments, cuda_arguments, gpu_arguments
from warplens.cli.options.argument import Argument
from warplens.errors import UsageError
from warplens.recording.options.capture import DEFAULTS, CaptureOptions, Convert, RangeEnd, Trigger
from warplens.recording.options.settings import settings, split_escaped, unescaped

ARGUMENTS = (
    Argument(("-y", "--delay"), "SECONDS", "Start recording SECONDS after the program's start."),
    Argument(
        ("-d", "--duration"),
        "SECONDS",
        "Stop recording SECONDS after the recording's start; the program continues, see --kill.",
    ),
    Argument(("-Y", "--start-later"), "", "Record nothing until `warplens start`, from another terminal."),
    Argument(
        ("-c", "--capture-range"),
        "TRIGGER",
        "Event that opens a window of recording: nvtx (the range of -p), cudaProfilerApi, none.  "
        "[default: none]",
    ),
    Argument(
        ("-p", "--nvtx-capture"),
        "RANGE",
        r"The range of -c nvtx: MESSAGE (in the default domain), MESSAGE@DOMAIN or MESSAGE@*. \@ is an @ in a name.",
    ),
    Argument(
        ("--capture-range-end",),
        "WHAT",
        "Effect of its end: none (keep recording), stop (record no more), repeat or repeat:N (record "
        "the next range, too; N in total); "
        "stop-shutdown and repeat-shutdown:N also end the recording and write the report.  [default: stop]",
    ),
    Argument(
        ("--kill",),
        "SIGNAL",
        "Signal for the program and its processes if the recording ends before them: none, sigterm, sigkill or a number. The "
        "exit code is then 128 + signal.  [default: none]",
    ),
    Argument(
        ("--nvtx-domain-include",),
        "LIST",
        r"Record only these NVTX domains, separated by commas; `default` is the unnamed one, `\,` a "
        r"comma.",
    ),
    Argument(("--nvtx-domain-exclude",), "LIST", "Record all NVTX domains except these."),
    Argument(
        ("--keep-last",),
        "SECONDS",
        "Flight recorder: keep only the last SECONDS; `warplens stop --keep` saves them in between.",
    ),
    Argument(("--max-size",), "SIZE", "Stop recording after this many bytes, e.g. 500M or 2G."),
    Argument(
        ("--convert",),
        "WHEN",
        "Time of writing the report: during the run, in a process that uses 5 % of a core; or at its "
        "end.  [default: during]",
    ),
    Argument(
        ("--session-new",),
        "NAME",
        "Name of this recording for `warplens start`, `stop` and `status`.",
    ),
    *cpu_arguments.ARGUMENTS,
    *cuda_arguments.ARGUMENTS,
    *gpu_arguments.ARGUMENTS,
)
# Every name -> its long name, and whether it is a flag.
NAMES = {name: (argument.long, not argument.value) for argument in ARGUMENTS for name in argument.names}

_TRIGGERS: dict[str, Trigger] = {"none": "none", "nvtx": "nvtx", "cudaprofilerapi": "cudaProfilerApi"}
_WHEN: tuple[Convert, ...] = ("during", "end")
_ENDS: tuple[RangeEnd, ...] = ("none", "stop", "stop-shutdown")
_MODES = (
    "",
    "sync",
    "async",
    "defer",
)  # how nsys writes the reports of repeated ranges: here all of them are in one
_SMALLEST = 1 << 20


def capture_options(given: Mapping[str, str], base: CaptureOptions = DEFAULTS) -> CaptureOptions:
    """Return `base` changed by `given`, which maps long names to texts.

    UsageError for invalid values. Texts are `true` and `false` for flags.
    """
    pattern = given.get("--nvtx-capture")
    end, count = _range_end(given.get("--capture-range-end", base.range_end))
    options = replace(
        base,
        delay=_seconds("--delay", given.get("--delay", "0")),
        duration=_seconds("--duration", given.get("--duration", "0")) or None,
        start_later=given.get("--start-later") == "true",
        capture_range=_trigger(given.get("--capture-range", "none")),
        nvtx_capture=None if pattern == "none" else pattern,
        range_end=end,
        range_count=count,
        kill=signal_number(given.get("--kill", "none")),
        domains_included=_domains("--nvtx-domain-include", given),
        domains_excluded=_domains("--nvtx-domain-exclude", given),
        keep_last=_seconds("--keep-last", given["--keep-last"], least=0.001)
        if "--keep-last" in given
        else None,
        max_size=_size(given["--max-size"]) if "--max-size" in given else None,
        session=given.get("--session-new"),
        convert=_convert(given.get("--convert", base.convert)),
        cuda=cuda_arguments.cuda_options(given),
        cpu=cpu_arguments.cpu_options(given),
        gpu_metrics=gpu_arguments.gpu_metrics(given),
    )
    _refuse_contradictions(options)
    settings(options)  # the names in it are checked there
    return options


def _refuse_contradictions(options: CaptureOptions) -> None:
    range_ = options.capture_range
    if range_ == "nvtx" and options.nvtx_capture is None:
        raise UsageError(
            "-c nvtx: which range? Name it with -p, for example -p step, -p step@training or -p 'step@*'."
        )
    if range_ != "nvtx" and options.nvtx_capture is not None:
        raise UsageError(
            f"-p {options.nvtx_capture} names the range of -c nvtx: add -c nvtx, or leave -p out."
        )
    if options.domains_included and options.domains_excluded:
        raise UsageError(
            "--nvtx-domain-include and --nvtx-domain-exclude cannot be combined: use one of them."
        )
    if options.delay and range_ == "nvtx":
        raise UsageError("--delay and -c nvtx both set the start of the recording: leave one out.")
    if options.delay and options.start_later:
        raise UsageError("--delay and --start-later both set the start of the recording: leave one out.")
    if options.keep_last is not None and range_ != "none":
        raise UsageError(f"--keep-last records the whole run, but -c {range_} does not: leave one out.")


def _seconds(name: str, text: str, least: float = 0.0) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= 1e9:  # also false for nan
        more = f", {least:g} or more" if least else ""
        raise UsageError(f"{name} {text}: write a number of seconds{more}, e.g. {name} 30 or {name} 0.5.")
    return value


def _trigger(text: str) -> Trigger:
    if text.lower() == "hotkey":
        raise UsageError(
            "-c hotkey: warplens has no hotkey. Use --start-later, and `warplens start` in another terminal."
        )
    trigger = _TRIGGERS.get(text.lower())
    if trigger is None:
        raise UsageError(f"-c {text}: write none, nvtx or cudaProfilerApi.")
    return trigger


def _convert(text: str) -> Convert:
    for when in _WHEN:
        if text.lower() == when:
            return when
    raise UsageError(f"--convert {text}: write during or end.")


def _range_end(text: str) -> tuple[RangeEnd, int]:
    """Return the meaning and N (0 = any number) of `repeat:2:sync` and the like."""
    name, *rest = text.lower().split(":")
    for end in _ENDS:
        if name == end and not rest:
            return end, 0
    number = rest.pop(0) if rest and rest[0] not in _MODES else None
    mode = rest.pop(0) if rest else ""
    if name not in ("repeat", "repeat-shutdown") or rest or mode not in _MODES:
        raise UsageError(
            f"--capture-range-end {text}: write none, stop, stop-shutdown, repeat, repeat:N or repeat-shutdown:N."
        )
    if number is None:
        if name == "repeat":
            return "repeat", 0
        raise UsageError(
            f"--capture-range-end {text}: the number of ranges is missing. For example repeat-shutdown:3."
        )
    if not re.fullmatch(r"[0-9]+", number) or not 1 <= int(number) < 8192:
        raise UsageError(f"--capture-range-end {text}: the number of ranges must be from 1 to 8191.")
    return ("repeat" if name == "repeat" else "repeat-shutdown"), int(number)


def signal_number(text: str) -> int:
    """Return the signal that `--kill` names, 0 for `none`; UsageError if there is no such."""
    if text.lower() == "none":
        return 0
    if text.isdecimal() and int(text) in set(signal.valid_signals()):
        return int(text)
    name = text.upper() if text.upper().startswith("SIG") else "SIG" + text.upper()
    if name in signal.Signals.__members__:
        return int(signal.Signals[name])
    raise UsageError(f"--kill {text}: write none, sigterm, sigkill or the number of a signal.")


def _domains(name: str, given: Mapping[str, str]) -> tuple[str, ...]:
    r"""Return the domains of `name`.

    The default one is "", and an escaped `\default` one that is called so.
    """
    if name not in given:
        return ()
    parts = split_escaped(given[name], ",")
    if not all(parts):
        raise UsageError(
            f"{name} {given[name]}: a name is missing. Write for example {name} default,training."
        )
    return tuple(dict.fromkeys("" if part == "default" else unescaped(part) for part in parts))


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise UsageError(
            f"--max-size {text}: write a number of bytes, or with K, M, G or T, e.g. 500M or 2G."
        )
    size = round(float(match[1]) * (1 << 10 * " KMGT".index(match[2].upper() or " ")))
    if not _SMALLEST <= size < 1 << 63:
        raise UsageError(
            f"--max-size {text}: that is too {'little' if size < _SMALLEST else 'much'}; the minimum is 1M."
        )
    return size
