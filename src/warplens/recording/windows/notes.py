"""Notes about the windows of a recording after its end."""

from __future__ import annotations

from pathlib import Path

from warplens.model.words import counted, duration, was
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.options.settings import capture_name
from warplens.recording.run_facts import RunFacts
from warplens.recording.windows.controller import State
from warplens.recording.windows.names_seen import like, names_seen


def note_windows(facts: RunFacts, state: State, options: CaptureOptions, end_ns: int, spool: Path) -> None:
    """Note where no window opened, and where one had to be closed."""
    if state.full:
        when = max((window.close_ns for window in state.windows if window.closed_by == "max-size"), default=0)
        after = f" {duration(when - facts.start_ns)} after it began" if when > facts.start_ns > 0 else ""
        facts.note(
            "warning",
            "max-size",
            f"The recording reached its --max-size of {_size(options.max_size or 0)}{after}, and "
            "stopped there. "
            "Give it more, or record less: a capture range, a duration, fewer domains.",
            time_ns=when or None,
        )
    if state.windows:
        return
    if options.capture_range == "nvtx":
        facts.note("warning", "capture-range-not-seen", _no_range(options.nvtx_capture or "", spool))
    elif options.capture_range == "cudaProfilerApi":
        facts.note(
            "warning",
            "capture-range-not-seen",
            "Nothing was captured: no process of the program called cudaProfilerStart (-c "
            "cudaProfilerApi). From Python, "
            "warplens.CudaProfiler(), warplens.capture() and torch.cuda.profiler do so.",
        )
    elif options.start_later:
        facts.note(
            "warning",
            "never-started",
            "Nothing was captured: recording waited for `warplens start`, which never came.",
        )
    elif options.delay:
        lived = (end_ns - (facts.start_ns or end_ns)) / 1e9
        facts.note(
            "warning",
            "never-started",
            f"Nothing was captured: the program ended after {lived:.3g} s, within the --delay of "
            f"{options.delay:g} s.",
        )


def _no_range(pattern: str, spool: Path) -> str:
    message, domain, any_domain = capture_name(pattern)
    where = (
        "in any domain" if any_domain else f"in the domain {domain!r}" if domain else "in the default domain"
    )
    names = names_seen(spool) - {message, domain, ""}
    near = like(message, names)
    seen = (
        f"Similar names in the recording: {', '.join(map(repr, near))}."
        if near
        else f"{counted(len(names), 'other name')} {was(len(names))} seen, of ranges, domains and "
        "threads; none is like it."
        if names
        else "The program had no ranges."
    )
    other = "" if any_domain else " The same range in another domain does not count: MESSAGE@* takes any."
    return (
        f"Nothing was captured: no NVTX range called {message!r} {where} began, which -p {pattern} "
        f"waited for. {seen}{other}"
    )


def _size(count: int) -> str:
    for factor, unit in ((1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M")):
        if count % factor == 0 or count > factor:
            return f"{count / factor:.3g} {unit}iB"
    return f"{count} bytes"
