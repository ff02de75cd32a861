"""The summary of a recording: losses, counts, cost, longest work, next commands."""

from __future__ import annotations

import signal
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.cpu.whereabouts import whereabouts
from warplens.analysis.memory import largest
from warplens.cli.printing import cpu_summary, where, windows
from warplens.cli.printing.colors import styled
from warplens.cli.printing.tables import apart, printable, shorten
from warplens.cli.printing.words import counted, duration, short_path, size
from warplens.model.words import percent
from warplens.report.columns import coded
from warplens.storage.manifest import PROCESSES_PER_PART as PART

if TYPE_CHECKING:
    from warplens.analysis.cpu.whereabouts import Whereabouts
    from warplens.report import Report
    from warplens.rules.base import Finding
    from warplens.rules.judging import Judgement
    from warplens.storage.manifest import Manifest

LONGEST = 5
# Few programs have them: silent otherwise.
_WHERE_ANY = (
    "tasks",
    "payloads",
    "counters",
    "samples",
    "objects",
    "API calls",
    "kernels",
    "memcpys",
    "memsets",
    "graphs",
)
# The rows of which tables, or what of them.
_PYTHON_FUNCTION = 0.5  # share of the time from which on a single function is looked at line by line
_COUNTS = {
    "recorded": ("processes", "count(*) FILTER (recorded IS NOT FALSE)"),
    "silent": ("processes", "count(*) FILTER (recorded IS FALSE)"),
    "threads": ("threads", ""),
    "ranges": ("nvtx_ranges", ""),
    "marks": ("nvtx_marks", ""),
    "tasks": ("tasks", ""),
    "payloads": ("payloads", ""),
    "counters": ("nvtx_counters", ""),
    "samples": ("nvtx_counter_samples", ""),
    "objects": ("nvtx_objects", ""),
    "API calls": ("cuda_api", ""),
    **{name: (name, "") for name in ("kernels", "memcpys", "memsets", "graphs")},
    "inside": ("intrakernel_launches", ""),
    "clipped": ("nvtx_ranges", "count(*) FILTER (clipped)"),
    **cpu_summary.COUNTS,
}
_NAMED = (
    "threads",
    "ranges",
    "marks",
    *_WHERE_ANY,
    "Python samples",
    "OS calls",
    "GIL holds",
    "collections",
    "Python calls",
)  # counts of other things tell nobody anything
_SHOWN = (
    "ranges",
    "marks",
    "samples",
    "API calls",
    "kernels",
    "memcpys",
    "memsets",
    "graphs",
    "inside",
    *cpu_summary.COUNTS,
)
_GPU = (
    "kernels",
    "memcpys",
    "memsets",
    "graphs",
    "overhead",
    "cuda_api",
    "gpu_metrics",
    "intrakernel_launches",
)
_PLAIN = ("processes", "samples")  # counted without SQL
_LOST = 0.01  # share of samples and switches up to which their loss changes nothing: `info` has it
_NOTHING = ("no-nvtx", "no-cuda")  # no process called these, and none has Python
_BUSY = 0.25  # share of the machine
_MOST_PLACES, _PLACES = 8, 6  # lines on where the time went: alone, and beside NVTX ranges or a GPU
_FEW = 10  # samples: fewer say nothing about shares of the time
_LEAST_NS = 1_000_000_000  # of a run: below it nobody asks what a fix is worth
_FINDINGS = 3
_MOST_GPUS = 4  # GPUs whose share of the main loop is printed
_MOST_LINES = 25
_WIDTH = 79
_HARD_SPACE = "\xa0"  # where a line must not be broken
_LABEL = 10
_COLORS = {"error": "red", "warning": "yellow"}


def summary(report: Report, manifest: Manifest) -> Iterator[str]:
    """Yield the lines about the part `manifest` of `report`, at most 79 columns wide apart from paths."""
    facts = _facts(report, manifest)
    low, high = manifest.part * PART, (manifest.part + 1) * PART - 1
    wall = manifest.end - manifest.origin
    beside = facts["ranges"] or any(manifest.rows(table) for table in _GPU)
    sampled = facts["Python samples"] + facts["native samples"] >= _FEW
    times = whereabouts(report, low, high, most=_PLACES if beside else _MOST_PLACES) if sampled else None
    where = (
        [*where_it_went(times, facts["recorded"] > 1)]
        if times is not None
        else [*_programs(report, low, high)]
    )
    lost = [*_lost(report, manifest, shown=bool(where))]
    parts = [
        [*_ended(manifest)],
        [*_recorded(facts, wall), *_used(report, manifest, wall)],
        [*_windows(report, manifest, facts), *_cost(manifest, facts["busiest"], wall)],
        [*_gpus(report, manifest, wall)],
        [*_longest(report, manifest)] if facts["ranges"] else [],
        where,
        [*_cpu_side(report, manifest, wall, hottest=sampled and times is None)],
    ]
    judgement = _judged(report, manifest, wall)
    parts[1] += [*_loop(report, judgement)]
    judged = [*_findings(judgement)]
    last = [*judged, *_next(report, manifest, facts, times=times, judged=bool(judged))]
    yield ""
    yield from lost
    yield from _fitting(parts, where, max(_MOST_LINES - 1 - len(last) - len(lost), 0))
    yield from last


def _fitting(parts: list[list[str]], first: list[str], room: int) -> Iterator[str]:
    """Yield the lines of the parts, `room` at most. The lines about time come before others."""
    kept = min(len(first), room)
    room -= kept
    for part in parts:
        shown = kept if part is first else min(len(part), room)
        yield from part[:shown]
        room -= 0 if part is first else shown


def _recorded(facts: dict[str, int], wall: int) -> Iterator[str]:
    names = [("recorded", "process"), *((name, cpu_summary.noun(name)) for name in _NAMED if facts[name])]
    counts = [counted(facts[name], noun).replace(" ", _HARD_SPACE) for name, noun in names]
    if facts["silent"] and not any(
        count for _, count in ((name, facts[name]) for name in ("recorded", *_NAMED))
    ):
        text = f"{counted(facts['silent'], 'process')} in {duration(wall)}".replace(" ", _HARD_SPACE)
        yield from _wrapped(
            styled("Recorded".ljust(_LABEL), bold=True), f"{text}; none of them has Python, CUDA or NVTX"
        )
        return
    others = counted(facts["silent"], "other process").replace(" ", _HARD_SPACE)
    silent = f"; {others} recorded nothing (see warplens info)" if facts["silent"] else ""
    yield from _wrapped(
        styled("Recorded".ljust(_LABEL), bold=True),
        f"{', '.join(counts)} in {duration(wall).replace(' ', _HARD_SPACE)}{silent}",
    )


def _used(report: Report, manifest: Manifest, wall: int) -> Iterator[str]:
    """CPU time against what there was of it, and memory."""
    words = []
    spent = manifest.usage.get("user_ns", 0) + manifest.usage.get("system_ns", 0)
    cpus = next(
        (row["cpus"] for row in report.table("targets").to_pylist() if row["host"] == manifest.host), 0
    )
    if spent and wall > 0:
        words.append(f"{duration(spent)} of CPU time: {spent / wall:.2f} of {counted(cpus, 'CPU')}")
    low, high = manifest.part * PART, (manifest.part + 1) * PART - 1
    most = largest(report, low, high, primary=manifest.usage.get("max_rss", 0))
    if most is not None:
        several = (
            sum(low <= key <= high for key in report.table("processes", ["process"])["process"].to_pylist())
            > 1
        )
        words.append(
            f"at most {size(most[0])} of memory{' in ' + printable(most[1]) if several and most[1] else ''}"
        )
    words += _load(report, wall, spent, cpus=cpus)
    if words:
        yield from _wrapped(styled("Used".ljust(_LABEL), bold=True), "; ".join(words))


def _load(report: Report, wall: int, spent: int, cpus: int) -> Iterator[str]:
    """What others did on this machine meanwhile, where it was much."""
    if not report.tables["host_metrics"] or not wall or not cpus:
        return
    rows = report.table("host_metrics", ["metric", "value"]).to_pylist()
    load = [row["value"] for row in rows if row["metric"] == "CPU Load"]
    others = sum(load) / len(load) / 100 * cpus - spent / wall if load else 0
    if others >= _BUSY * cpus:
        yield f"other programs used {others:.1f} CPUs"


def _cpu_side(report: Report, manifest: Manifest, wall: int, *, hottest: bool) -> Iterator[str]:
    processes = manifest.part * PART, (manifest.part + 1) * PART - 1
    for label, text in cpu_summary.lines(report, processes, wall, hottest=hottest):
        yield from _wrapped(styled(label.ljust(_LABEL), bold=True), text)


def where_it_went(times: Whereabouts, several: bool) -> Iterator[str]:
    """Yield the lines that say where the time went."""
    for index, text in enumerate(where.lines(times, several, _WIDTH - _LABEL)):
        yield _line("" if index else "Time", text)


def _programs(report: Report, low: int, high: int) -> Iterator[str]:
    for index, text in enumerate(where.programs(report, low, high, width=_WIDTH - _LABEL)):
        yield _line("" if index else "Time", text)


def _cost(manifest: Manifest, busiest: int, wall: int) -> Iterator[str]:
    """What recording cost: of sources whose cost is measured, where they recorded anything."""
    if busiest or not any(
        "cost_ns" in source or not source.get("on") for source in manifest.sources.values()
    ):
        yield from _wrapped(styled("Sources".ljust(_LABEL), bold=True), _sources(manifest, busiest, wall))


def _judged(report: Report, manifest: Manifest, wall: int) -> Judgement | None:
    """What the rules say of the run.

    None of runs too short for anybody to ask, and of one part of several.
    """
    if wall < _LEAST_NS or len(report.manifests) > 1:
        return None
    from warplens.report import Selection
    from warplens.rules.judging import judge

    return judge(report, Selection())


def _loop(report: Report, judgement: Judgement | None) -> Iterator[str]:
    """The main loop, where it is but a part of the run, and how much of it GPUs were busy."""
    if judgement is None or judgement.loop is None:
        return
    loop = judgement.loop
    text = (
        f"{counted(loop.iterations, loop.name or 'iteration')} of {duration(loop.usual)}: "
        f"{duration(loop.end - loop.begin)}, starting at {duration(loop.begin - judgement.begin)}"
    )
    if any(report.tables[table] for table in _GPU):
        from warplens.report import Selection
        from warplens.rules.gpus import gpus

        devices = gpus(report, Selection(time=(loop.begin - report.origin, loop.end - report.origin)))
        shares = [f"{100 * gpu.busy.total / (loop.end - loop.begin):.0f} %" for gpu in devices[:_MOST_GPUS]]
        text += f"; {'GPU' if len(devices) == 1 else 'GPUs'} busy {', '.join(shares)} of it{', …' if len(devices) > _MOST_GPUS else ''}"
    yield from _wrapped(styled("Loop".ljust(_LABEL), bold=True), text)


def _findings(judgement: Judgement | None) -> Iterator[str]:
    """The findings that `analyze` puts first, with what a fix is worth.

    The first title has two lines.
    """
    shown = [finding for finding in judgement.distinct if finding.severity != "info"] if judgement else []
    worth = [finding for finding in shown if finding.severity != "low"] or shown
    for index, finding in enumerate(worth[:_FINDINGS]):
        head = f"{_worth(finding):>8}  "
        room = _WIDTH - _LABEL - len(head)
        if index:
            yield _line("", head + shorten(printable(finding.title), room))
            continue
        first, *rest = textwrap.wrap(printable(finding.title), room) or [""]
        yield _line("Fix", head + first)
        if rest:
            yield _line("", " " * len(head) + shorten(" ".join(rest), room))


def _worth(finding: Finding) -> str:
    """What a fix should win; where nobody knows, the time that it cannot exceed."""
    if finding.estimate is not None:
        return duration(finding.estimate)
    return f"≤{duration(finding.bound)}" if finding.bound is not None else ""


def _next(
    report: Report, manifest: Manifest, facts: dict[str, int], times: Whereabouts | None, judged: bool
) -> Iterator[str]:
    """The report, and the two commands that help most with this one."""
    path = short_path(report.path)
    yield _line("Report", f"{path} ({size(_bytes(report, manifest))})")
    commands = []
    if judged:
        commands.append("analyze")
    if any(facts[name] for name in ("ranges", "marks", "samples", "API calls", "kernels", "inside")):
        commands.append("timeline")
        commands.append("stats")
    elif times is not None and not times.python:
        commands += ["flame", "timeline"]
    elif times is not None and times.hot is not None:
        looks = ["flame --kind python", "source"]
        commands += looks[::-1] if times.hot.ns >= _PYTHON_FUNCTION * times.whole else looks
    elif times is not None:
        commands += ["flame --kind python --wall", "timeline"]
    elif any(facts[name] for name in _SHOWN):
        commands += ["timeline", "stats"]
    else:
        commands.append("info")
    for index, name in enumerate(list(dict.fromkeys(commands))[:2]):
        yield _line("" if index else "Next", f"warplens {name} {path}")


def _gpus(report: Report, manifest: Manifest, wall: int) -> Iterator[str]:
    if not any(manifest.rows(table) for table in _GPU):
        return
    from warplens.cli.printing import gpu_summary, inside_summary

    part = _part(manifest)
    for label, text in gpu_summary.busy(report, part, wall):
        yield from _wrapped(styled(label.ljust(_LABEL), bold=True), text)
    kernels = [
        (f"{duration(total):>9}  {number:>9,} x  ", name)
        for total, number, name in gpu_summary.kernels(report, part)
    ]
    names = apart(
        [name for _, name in kernels],
        _WIDTH - _LABEL - max((len(numbers) for numbers, _ in kernels), default=0),
    )
    for index, (numbers, name) in enumerate(kernels):
        yield _line("" if index else "Kernels", numbers + names[name])
    for index, text in enumerate(inside_summary.lines(report, part, _WIDTH - _LABEL)):
        yield _line("" if index else "Inside", text)
    for label, text in (
        ("Copies", gpu_summary.copies(report, part)),
        ("Graphs", gpu_summary.graphs(report, part)),
        ("Overhead", gpu_summary.overhead(report, part)),
    ):
        if text:
            yield from _wrapped(styled(label.ljust(_LABEL), bold=True), text)


def _part(manifest: Manifest) -> str:
    return f"process BETWEEN {manifest.part * PART} AND {(manifest.part + 1) * PART - 1}"


def _facts(report: Report, manifest: Manifest) -> dict[str, int]:
    """Count, asking no more tables than have something to tell: each takes a few milliseconds."""
    part = _part(manifest)
    facts = {name: 0 if what else manifest.rows(table) for name, (table, what) in _COUNTS.items()}
    facts |= _without_sql(report, manifest)
    asked = {
        name: f"SELECT {what} FROM {table} WHERE {part}"
        for name, (table, what) in _COUNTS.items()
        if what and manifest.rows(table) and table not in _PLAIN
    }
    facts["busiest"] = 0
    if manifest.rows("nvtx_ranges"):
        asked["busiest"] = (
            f"SELECT max(n) FROM (SELECT count(*) AS n FROM nvtx_ranges WHERE {part} GROUP BY thread)"
        )
    if asked:
        row = report.sql(
            "SELECT " + ", ".join(f'({query}) AS "{name}"' for name, query in asked.items())
        ).to_pylist()[0]
        facts |= {name: int(value or 0) for name, value in row.items()}
    return facts


def _without_sql(report: Report, manifest: Manifest) -> dict[str, int]:
    """Count what every run has: to load DuckDB takes longer than all else of a short run's last lines."""
    low, high = manifest.part * PART, (manifest.part + 1) * PART - 1
    mine = [
        row["recorded"]
        for row in report.table("processes", ["process", "recorded"]).to_pylist()
        if low <= row["process"] <= high
    ]
    silent = sum(recorded is False for recorded in mine)
    facts = {"recorded": len(mine) - silent, "silent": silent}
    if manifest.rows("samples"):
        rows = report.table("samples", ["process", "kind", "count"])
        process, count = (np.asarray(rows[name].to_numpy(), np.int64) for name in ("process", "count"))
        kinds, kind = coded(rows["kind"])
        here = (process >= low) & (process <= high)
        for name, text in (("native samples", "native"), ("Python samples", "python")):
            of_kind = here & (kind == kinds.index(text)) if text in kinds else np.zeros(len(here), bool)
            facts[name] = int(count[of_kind].sum())
    return facts


def _windows(report: Report, manifest: Manifest, facts: dict[str, int]) -> Iterator[str]:
    rows = [row for row in report.table("capture_windows").to_pylist() if row["part"] == manifest.part]
    rows.sort(key=lambda row: row["number"])
    recorder = any(row["code"] == "keep-last" for row in report.table("diagnostics", ["code"]).to_pylist())
    if not windows.worth_telling(rows) and not (
        rows and recorder
    ):  # then the summary has to name the missing data
        return
    for index, line in enumerate(windows.lines(rows, report.origin)):
        yield _line("" if index else "Windows", line)
    if facts["clipped"]:
        yield _line("", f"{counted(facts['clipped'], 'range')} across an edge; --window N shows one window")


def _lost(report: Report, manifest: Manifest, *, shown: bool) -> Iterator[str]:
    """What was lost. Where there is something to show, nobody has to hear that there is no NVTX."""
    if not {"error", "warning"} & set(report.table("diagnostics", ["severity"])["severity"].to_pylist()):
        return
    rows = report.sql(
        """SELECT severity, message, more, code, count FROM (
             SELECT *, CASE WHEN source = 'cpu' THEN count(*) OVER same - 1 ELSE 0 END AS more, row_number() OVER same AS number
             FROM diagnostics
             WHERE severity IN ('error', 'warning') AND (process IS NULL OR process BETWEEN $low AND $high)
             WINDOW same AS (PARTITION BY severity, code, source, regexp_replace(message, '[0-9]+', '', 'g')
               ORDER BY process ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING))
           WHERE source != 'cpu' OR number = 1
           ORDER BY severity, count DESC NULLS LAST""",
        {"low": manifest.part * PART, "high": (manifest.part + 1) * PART - 1},
    ).to_pylist()
    seen = manifest.rows("samples") + manifest.rows("thread_states")
    rows = [row for row in rows if row["code"] != "perf-lost" or (row["count"] or 0) > _LOST * seen]
    rows = [row for row in rows if not (shown and row["code"] in _NOTHING)]
    for row in rows[:8]:
        label = styled(row["severity"].capitalize().ljust(_LABEL), fg=_COLORS[row["severity"]])
        more = f" (the same in {counted(row['more'], 'other process')})" if row["more"] else ""
        yield from _wrapped(label, printable(row["message"]) + more)
    if len(rows) > 8:
        yield _line("", f"and {len(rows) - 8} more: warplens info {short_path(report.path)}")


def _ended(manifest: Manifest) -> Iterator[str]:
    status = manifest.exit_status
    if status is None or status == 0:
        return
    text = f"with exit code {status}"
    if status > 128:
        try:
            text = f"killed by {signal.Signals(status - 128).name} (exit code {status})"
        except ValueError:
            pass
    yield _line("Ended", text)


def _sources(manifest: Manifest, busiest: int, wall: int) -> str:
    words = []
    for name, source in manifest.sources.items():
        if not source.get("on"):
            continue
        cost = source.get("cost_ns")
        if "cost_ns" not in source:
            words.append(name)
        elif cost is None:
            words.append(f"{name} (its cost could not be measured)")
        elif busiest and wall > 0:
            words.append(
                f"{name}: {cost:.0f} ns a range here, {_percent(busiest * cost / wall)} of the run (busiest thread)"
            )
        else:
            words.append(f"{name}: {cost:.0f} ns a range here")
    return "; ".join(words) or "nothing"


def _longest(report: Report, manifest: Manifest) -> Iterator[str]:
    rows = report.sql(
        f"""SELECT message, domain, count(*) AS n, sum("end" - "start")::BIGINT AS total FROM nvtx_ranges
            WHERE process BETWEEN $low AND $high GROUP BY message, domain ORDER BY total DESC, message LIMIT {LONGEST}""",
        {"low": manifest.part * PART, "high": (manifest.part + 1) * PART - 1},
    ).to_pylist()
    for index, row in enumerate(rows):
        name = printable(row["message"] or "(no message)")
        if row["domain"]:
            name += f"  [{printable(row['domain'])}]"
        numbers = f"{duration(row['total']):>9}  {row['n']:>9,} x  "
        yield _line("Longest" if index == 0 else "", numbers + shorten(name, _WIDTH - _LABEL - len(numbers)))


def _bytes(report: Report, manifest: Manifest) -> int:
    total = 0
    for table in manifest.tables.values():
        try:
            total += (report.path / str(table["file"])).stat().st_size
        except OSError:
            continue
    return total


def _percent(share: float) -> str:
    return "under 0.01 %" if 0 < share < 0.0001 else percent(share, 2)


def _wrapped(label: str, text: str) -> Iterator[str]:
    for index, line in enumerate(
        textwrap.wrap(text, _WIDTH - _LABEL, break_long_words=False, break_on_hyphens=False) or [""]
    ):
        yield (label if index == 0 else " " * _LABEL) + line.replace(_HARD_SPACE, " ")


def _line(label: str, text: str) -> str:
    return styled(label.ljust(_LABEL), bold=True) + text
