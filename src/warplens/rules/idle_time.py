"""The idle time of GPUs by cause, as `gpu_utilization` counts it: what findings may claim of it, and which finding has which part.

A nanosecond in which a GPU did nothing has one cause. A finding cannot win more than there is, and it is counted for one finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.idle import idle
from warplens.analysis.intervals import Cover
from warplens.analysis.once import once
from warplens.errors import MissingData
from warplens.rules.base import Finding, IdleShare, own_idle
from warplens.rules.gpus import gpus
from warplens.rules.hosts import numbers

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# The work had been launched, and waited for something else than the host: no call that the host leaves out makes it begin sooner.
_HELD = ("unknown", "dependency", "collective wait", "head", "tail", "earlier work")
# What a host that is ahead fills: a wait that goes away makes the launches behind it earlier, too. The first has most.
# Of `unknown` only what was launched by a call that is not in the report.
_FILLED = ("host-bound", "sync-bound", "launch-bound", "copy-bound", "unknown")
CUT = "cut to the time in which GPUs did nothing that an earlier launch would have filled"
Gpu = tuple[int, int]
Held = Mapping[Gpu, Cover]


@once
def rows_of(report: Report, selection: Selection) -> pa.Table:
    """Return when GPUs did nothing, with the cause as text."""
    rows = idle(report, selection)
    cause = pc.cast(rows.column("cause"), pa.string())
    return rows.select(["process", "device", "start", "end", "api"]).append_column("cause", cause)


@once
def held(report: Report, selection: Selection) -> Held:
    """Return when GPUs (process, device) did nothing although their next work had been launched."""
    rows = rows_of(report, selection)
    rows = rows.filter(pc.is_in(rows.column("cause"), value_set=pa.array(_HELD)))
    process, device, start, end = (numbers(rows, name) for name in ("process", "device", "start", "end"))
    return {
        (one, gpu): Cover(start[mine], end[mine])
        for one, gpu in set(zip(process.tolist(), device.tolist(), strict=True))
        if (mine := np.asarray((process == one) & (device == gpu))).any()
    }


class IdleLedger:
    """Idle time of each GPU in the judged time by cause, ns, and the part without a finding yet.

    Without work that had been launched in time and was held by something that the report does not show.
    """

    def __init__(self, whole: dict[Gpu, dict[str, int]], process_of: dict[int, int]) -> None:
        """Keep the times by GPU and cause, and the process of each thread."""
        self.whole = whole
        self._process_of = process_of
        self._left = {gpu: dict(causes) for gpu, causes in whole.items()}

    @classmethod
    def of(cls, report: Report, selection: Selection) -> IdleLedger:
        """Return the ledger of a report; empty without a GPU."""
        try:
            gpus(report, selection)
        except MissingData:
            return cls({}, {})
        rows = rows_of(report, selection)
        waited = pc.and_(pc.equal(rows.column("cause"), "unknown"), pc.is_valid(rows.column("api")))
        rows = rows.filter(pc.invert(waited))
        lengths = rows.append_column("ns", pc.subtract(rows.column("end"), rows.column("start")))
        sums = lengths.group_by(["process", "device", "cause"]).aggregate([("ns", "sum")])
        whole: dict[Gpu, dict[str, int]] = {}
        for row in sums.to_pylist():
            whole.setdefault((row["process"], row["device"]), {})[row["cause"]] = row["ns_sum"]
        threads = report.sql("SELECT thread, process FROM threads").to_pylist()
        return cls(whole, {row["thread"]: row["process"] for row in threads})

    def cut(self, finding: Finding, own: Sequence[str]) -> Finding:
        """Return a finding that expects no more than its GPUs could be made to do sooner.

        `own`: the causes of idle time that its fix takes away.
        """
        mine = self._gpus(finding)
        if not own or not mine or finding.estimate is None:
            return finding
        causes = set(_FILLED).union(own)
        most = max(sum(self.whole[gpu].get(cause, 0) for cause in causes) for gpu in mine)
        if finding.estimate <= most:
            return finding
        return replace(finding, estimate=most, priced_by=f"{finding.priced_by}; {CUT}")

    def share(self, finding: Finding, own: Sequence[str]) -> Finding:
        """Return a finding with its part of the idle time, its own causes first; what earlier findings have is gone."""
        if not own or not finding.estimate:
            return finding
        causes = dict.fromkeys((*own, *_FILLED))
        mine = self._gpus(finding)
        parts = [share for gpu in mine for share in self._taken(gpu, finding.estimate, causes=causes)]
        with_idle = replace(finding, idle=tuple(parts))
        return replace(with_idle, shared=max(finding.estimate - own_idle(with_idle), 0) if mine else 0)

    def _taken(self, gpu: Gpu, ns: int, causes: Mapping[str, None]) -> Iterator[IdleShare]:
        left = self._left[gpu]
        for cause in causes:
            part = min(left.get(cause, 0), ns)
            if part:
                left[cause] -= part
                ns -= part
                yield IdleShare(process=gpu[0], device=gpu[1], cause=cause, ns=part)

    def _gpus(self, finding: Finding) -> list[Gpu]:
        """Return the GPUs of the processes that a finding names; all where it names none."""
        named = {row.process for row in finding.evidence} | {
            self._process_of.get(row.thread) for row in finding.evidence if row.thread is not None
        }
        mine = [gpu for gpu in self.whole if gpu[0] in named]
        return mine or list(self.whole)
