"""The totals of a run: duration, CPU, memory, iterations of its main loop, requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.memory import largest
from warplens.analysis.memory_phases import WHOLE, memory_phases
from warplens.analysis.steps.loops import MainLoop
from warplens.storage.manifest import PROCESSES_PER_PART

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

# Facts by name, each with its unit: ns, bytes, or empty for a number of things.
FACTS = {
    "wall time": "ns",
    "before the main loop": "ns",
    "main loop": "ns",
    "one iteration": "ns",
    "iterations": "",
    "CPU time": "ns",
    "most memory": "bytes",
    "processes": "",
    "requests": "",
}
PHASE = "most memory, during "  # before the name of a phase
_NAMES = 5  # of processes and of phases whose memory is listed
_REQUEST = r"(?i)^(http )?(request|handle[ _]request|GET|POST)\b.*"


def run_facts(report: Report, selection: Selection, loop: MainLoop | None) -> dict[str, float]:
    """Return what is known of a run, by the names of `FACTS`.

    What a recording does not know is not there.
    """
    begin, end = selection.window(report) or report.span
    facts: dict[str, float] = {"wall time": end - begin}
    if loop is not None:
        facts["before the main loop"] = loop.begin - begin
        facts["main loop"] = loop.end - loop.begin
        facts["one iteration"] = (loop.end - loop.begin) / loop.iterations
        facts["iterations"] = loop.iterations
    used = [manifest.usage for manifest in report.manifests if manifest.usage]
    if used:
        facts["CPU time"] = sum(usage.get("user_ns", 0) + usage.get("system_ns", 0) for usage in used)
    peaks = [
        largest(report, low, low + PROCESSES_PER_PART - 1, primary=manifest.usage.get("max_rss", 0))
        for manifest in report.manifests
        for low in (manifest.part * PROCESSES_PER_PART,)
    ]
    known = [peak[0] for peak in peaks if peak is not None]
    if known:
        facts["most memory"] = max(known)
        facts |= {f"most memory, {name}": size for name, size in _by_name(report).items()}
        facts |= {f"{PHASE}{name}": size for name, size in _by_phase(report).items()}
    facts["processes"] = report.tables["processes"]
    if requests := _requests(report):
        facts["requests"] = requests
    return facts


def _by_name(report: Report) -> dict[str, int]:
    """Return the peak memory (bytes) of the processes of each name, if there are several names."""
    peaks: dict[str, int] = {}
    for row in report.table("processes", ["name", "max_rss"]).to_pylist():
        if row["name"] and row["max_rss"]:
            peaks[row["name"]] = max(peaks.get(row["name"], 0), row["max_rss"])
    largest_first = sorted(peaks, key=lambda name: (-peaks[name], name))
    return {name: peaks[name] for name in largest_first[:_NAMES]} if len(peaks) > 1 else {}


def _by_phase(report: Report) -> dict[str, int]:
    """Return the largest memory (bytes) of a process in each phase."""
    peaks: dict[str, int] = {}
    for row in memory_phases(report):
        if row.phase != WHOLE and row.peak:
            peaks[row.phase] = max(peaks.get(row.phase, 0), row.peak)
    largest_first = sorted(peaks, key=lambda name: (-peaks[name], name))
    return {name: peaks[name] for name in largest_first[:_NAMES]}


def _requests(report: Report) -> int:
    """Return how many requests a server answered; 0: unknown.

    Ranges with such names, else accepted connections.
    """
    (row,) = report.sql(
        f"""SELECT (SELECT count(*) FROM nvtx_ranges WHERE regexp_matches(message::VARCHAR, '{_REQUEST}')) AS ranges,
                   (SELECT count(*) FROM osrt WHERE name::VARCHAR IN ('accept', 'accept4')) AS accepted"""
    ).to_pylist()
    return int(row["ranges"] or row["accepted"])
