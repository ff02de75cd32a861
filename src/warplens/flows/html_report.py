"""A report as one HTML page: the program, costs and causes, GPU use, and the tables of `warplens stats`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens import catalog
from warplens.analysis.gpu.ops import busy
from warplens.disk.files import text_output
from warplens.errors import MissingData
from warplens.flows.html import gpu_plots
from warplens.flows.html.page import heading, page, table, tiles
from warplens.flows.html.plots import bars
from warplens.flows.html.stat_page import stat_section
from warplens.flows.html.words import duration, safe
from warplens.report.selection import Selection
from warplens.rules.judging import judge

if TYPE_CHECKING:
    from warplens.catalog import Unit
    from warplens.report import Report
    from warplens.rules.base import Finding
    from warplens.rules.judging import Judgement

SUFFIX = ".html"
LOSES: tuple[str, ...] = ("single events: the page has sums, plots and findings, the report has everything",)
_ALL = Selection()
_ROWS = 25  # of each table
_EVIDENCE = 8
_ASKED = ("temporal_breakdown", "comm_comp_overlap", "step_breakdown")  # beside those that come unasked


def write(report: Report, out: Path, selection: Selection = _ALL) -> None:
    """Write the page of the selected part of a report. Raises OSError."""
    page_text = report_page(report, selection)
    with text_output(out) as file:
        file.write(page_text)


def report_page(report: Report, selection: Selection = _ALL) -> str:
    """Return the page of the selected part of a report."""
    name = report.path.name
    return page(
        name,
        _head(report),
        _numbers(report, selection),
        _findings(judge(report, selection)),
        _gpus(report, selection),
        _stats(report, selection),
        _diagnostics(report),
    )


def _head(report: Report) -> str:
    first = report.manifests[0]
    hosts = list(dict.fromkeys(manifest.host for manifest in report.manifests))
    parts = [f"<h1>{safe(report.path.name)}</h1>"]
    if first.command:
        parts.append(f"<p><code>{safe(' '.join(first.command))}</code></p>")
    began = report.origin + first.realtime_offset
    told = []
    if first.realtime_offset:
        told.append(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(began / 1e9)))
    told.append(", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more hosts" if len(hosts) > 8 else ""))
    if first.exit_status:
        told.append(f"exit status {first.exit_status}")
    return "".join(parts) + f'<p class="dim">{safe(" · ".join(told))}</p>'


def _numbers(report: Report, selection: Selection) -> str:
    begin, end = selection.window(report) or report.span
    facts = [("duration", duration(end - begin))]
    processes = report.sql("SELECT count(*) AS n, count(rank) AS ranks FROM processes").to_pylist()[0]
    facts.append(
        ("ranks", f"{processes['ranks']:,}") if processes["ranks"] else ("processes", f"{processes['n']:,}")
    )
    gpus = {
        row["uuid"] or (row["process"], row["device"])
        for row in report.table("devices", ["process", "device", "uuid"]).to_pylist()
    }
    rows = busy(report, selection).to_pylist()
    if gpus:
        facts.append(("GPUs", f"{len(gpus):,}"))
    if rows and end > begin:
        facts.append(
            (
                "GPU busy, on average",
                f"{100 * sum(row['busy'] for row in rows) / len(rows) / (end - begin):.1f} %",
            )
        )
    counts = report.tables
    for name, what in (
        ("kernels", "kernels"),
        ("cuda_api", "CUDA calls"),
        ("nvtx_ranges", "NVTX ranges"),
        ("samples", "samples"),
    ):
        if counts[name]:
            facts.append((what, f"{counts[name]:,}"))
    return tiles(facts)


def _findings(judgement: Judgement) -> str:
    if not judgement.findings:
        said = "No rule found anything." if judgement.silent else "No rule could judge this report."
    else:
        said = (
            "Findings, most serious first. A bound is the maximum saving of a fix; savings of "
            "findings do not add up."
        )
        if judgement.loop is not None:
            said += f" Judged: {judgement.scope}."
    parts = [heading("Findings", said)]
    parts += [_finding(finding, judgement) for finding in judgement.distinct]
    if judgement.silent:
        parts.append(f'<p class="dim">Nothing found by: {safe(", ".join(judgement.silent))}.</p>')
    if judgement.not_judged:
        rows = "".join(
            f"<li>{safe(rule)}: the report {safe(reason)}</li>"
            for rule, reason in judgement.not_judged.items()
        )
        parts.append(
            f"<details><summary>{len(judgement.not_judged)} rules could not "
            f"judge</summary><ul>{rows}</ul></details>"
        )
    return "".join(parts)


def _finding(finding: Finding, judgement: Judgement) -> str:
    told = [str(finding.severity)]
    if finding.bound is not None:
        share = f" ({100 * finding.bound / judgement.span:.1f} %)" if judgement.span > 0 else ""
        told.append(f"at most {duration(finding.bound)}{share}")
    if finding.estimate is not None:
        told.append(f"expected {duration(finding.estimate)}")
    told.append(f"confidence {finding.confidence}")
    rows = "".join(
        f"<tr><td class=n>{safe(duration(row.start - judgement.origin))}</td><td "
        f"class=n>{safe(duration(row.end - row.start))}</td>"
        f"<td>{safe(row.text)}</td></tr>"
        for row in finding.evidence[:_EVIDENCE]
    )
    head = "<thead><tr><th class=n>at</th><th class=n>took</th><th>what</th></tr></thead>"
    evidence = (
        f"<details><summary>{len(finding.evidence[:_EVIDENCE])} of {finding.occurrences:,} "
        "occurrences</summary>"
        f'<div class="scroll"><table>{head}{rows}</table></div></details>'
        if rows
        else ""
    )
    link = (
        f' <a href="{safe(finding.link)}" rel="noreferrer">more</a>'
        if finding.link.startswith("https://")
        else ""
    )
    wrong = f'<p class="dim">{safe(finding.wrong_when)}</p>' if finding.wrong_when else ""
    return (
        f'<div class="finding {safe(finding.severity)}"><h3>{safe(finding.title)}</h3><p class="dim">{safe(" · ".join(told))}</p>'
        f"<p>{safe(finding.cause)}</p><p><b>Fix:</b> {safe(finding.fix)}{link}</p>{wrong}{evidence}</div>"
    )


def _gpus(report: Report, selection: Selection) -> str:
    parts = []
    used = gpu_plots.utilisation(report, selection)
    if used:
        parts.append(
            heading("GPU utilisation over time", "Part of the time in which something ran on the GPU.") + used
        )
    causes = gpu_plots.idle_causes(report, selection)
    if causes:
        about = "All idle time by cause; warplens stats --help-reports gpu_utilization explains each."
        parts.append(heading("Why GPUs were idle", about) + causes)
    classes = _classes(report, selection)
    if classes:
        parts.append(heading("Kinds of GPU work", "Sums of operations, all GPUs.") + classes)
    memory = gpu_plots.memory(report, selection)
    if memory:
        parts.append(
            heading(
                "Memory over time",
                "Memory that the program allocated from CUDA, and tensor memory of its framework.",
            )
            + memory
        )
    return "".join(parts)


def _classes(report: Report, selection: Selection) -> str:
    rows = _table(report, selection, "kernel_breakdown")
    if rows is None or "Kind" not in rows.column_names:
        return ""
    sums: dict[str, float] = {}
    for kind, spent in zip(
        rows.column("Kind").to_pylist(), rows.column("Total Time (ns)").to_pylist(), strict=True
    ):
        sums[kind] = sums.get(kind, 0.0) + float(spent or 0)
    return bars(sorted(sums.items(), key=lambda pair: -pair[1]), "ns")


def _stats(report: Report, selection: Selection) -> str:
    parts = []
    for unit in _chosen():
        rows = _table(report, selection, unit.id)
        if rows is not None and rows.num_rows:
            parts.append(stat_section(unit, rows, most=_ROWS, named=True))
    return "\n".join(parts)


def _chosen() -> list[Unit]:
    """Return the stats that `warplens stats` prints unasked, and a few more.

    Not those with a row for each event.
    """
    places = {unit: unit.constant("DEFAULT") for unit in catalog.units("stats.tables")}
    unasked = sorted(
        (unit for unit, place in places.items() if place is not False),
        key=lambda unit: places[unit] or len(places),
    )
    asked = [catalog.find("stats.tables", name) for name in _ASKED]
    return [unit for unit in dict.fromkeys([*asked, *unasked]) if not unit.id.endswith("_trace")]


def _table(report: Report, selection: Selection, name: str) -> Any:
    try:
        return catalog.find("stats.tables", name).load().table(report, selection)
    except MissingData:
        return None


def _diagnostics(report: Report) -> str:
    rows = report.diagnostics
    if not rows.num_rows:
        return ""
    return heading("What was lost, guessed or not recorded") + table(
        rows.select(["severity", "code", "source", "message", "count"]), most=50
    )
