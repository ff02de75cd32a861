"""A report that answers: stats, findings, gaps and overlaps by method, for people who work in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens import catalog
from warplens.analysis.intervals import covered
from warplens.arrays import Int64Array
from warplens.errors import UsageError
from warplens.model.tables import TABLES
from warplens.report import report as reports
from warplens.report.selection import Selection, parse_duration

if TYPE_CHECKING:
    from warplens.rules.base import Finding
    from warplens.rules.judging import Judgement


@dataclass(frozen=True)
class Overlap:
    """The overlap of two sets of intervals, ns.

    Time counts once in each: `both` of it is in `a` and in `b`.
    """

    a: int
    b: int
    both: int

    @property
    def only_a(self) -> int:
        """Time of `a` without `b`."""
        return self.a - self.both

    @property
    def only_b(self) -> int:
        """Time of `b` without `a`."""
        return self.b - self.both

    @property
    def share(self) -> float:
        """Part of `a` that `b` covers, 0 to 1; 0 if there is no `a`."""
        return self.both / self.a if self.a else 0.0


class Report(reports.Report):
    """An open report with the questions of the command line as methods.

    What is asked of a part takes `time=` and `nvtx=`.

    `time` is what `--filter-time` takes (`"1s/1s500ms"`), `nvtx` what `--filter-nvtx` takes (`"step/3"`).
    """

    def stats(
        self, name: str, *, time: str | None = None, nvtx: str | None = None, **options: Any
    ) -> pa.Table:
        """Return the stat `name` as Arrow (`.to_pandas()` for pandas); times in ns.

        `options` are those of the stat, as `warplens stats --help-reports NAME` has them: `base=True`. Raises UsageError for a stat or
        option that does not exist, MissingData if the report lacks the data.
        """
        unit = catalog.find("stats.tables", name)
        unknown = sorted(set(options) - {option.name for option in unit.options})
        if unknown:
            takes = ", ".join(option.name for option in unit.options) or "none"
            raise UsageError(f"{unit.id} has no option {unknown[0]!r}; it takes: {takes}.")
        result: pa.Table = unit.load().table(self, Selection.parse(time, nvtx), **options)
        return result

    def judgement(self, *rules: str, time: str | None = None, nvtx: str | None = None) -> Judgement:
        """Return the findings of the rules, the silent rules, and those that could not judge.

        All rules if none is named.
        """
        from warplens.rules.judging import judge

        return judge(self, Selection.parse(time, nvtx), rules or None)

    def findings(self, *rules: str, time: str | None = None, nvtx: str | None = None) -> tuple[Finding, ...]:
        """Return what the rules (all if none is named) found, most serious first.

        See `judgement` for the others.
        """
        return self.judgement(*rules, time=time, nvtx=nvtx).findings

    def gaps(
        self,
        *,
        device: int | None = None,
        longer_than: str | int = 0,
        time: str | None = None,
        nvtx: str | None = None,
    ) -> pa.Table:
        """Return when GPUs were idle, and why.

        Columns: process, device, start, end (ns), cause, api, thread, waits (`analysis.gpu.idle`).

        `device`: of one GPU, as CUDA numbers it. `longer_than`: a time such as `"20us"`, or ns, of the whole
        gap; its pieces, one for each cause, have its number in `gap`. Raises MissingData without GPU work.
        """
        import pyarrow.compute as pc

        from warplens.analysis.gpu.idle import idle

        least = parse_duration(longer_than) if isinstance(longer_than, str) else longer_than
        rows = idle(self, Selection.parse(time, nvtx), longer_than=least)
        return rows if device is None else rows.filter(pc.equal(rows.column("device"), device))

    def overlap(self, a: str | pa.Table, b: str | pa.Table) -> Overlap:
        """Return for how long `a` and `b` happened at the same time.

        Each is a table of the report (`"kernels"`), a SELECT with columns start and end, or an Arrow table with them (ns).
        """
        first, second = self._intervals(a), self._intervals(b)
        each = covered(*first), covered(*second)
        either = covered(*(np.concatenate(edges) for edges in zip(first, second, strict=True)))
        return Overlap(*each, sum(each) - either)

    def _intervals(self, of: str | pa.Table) -> tuple[Int64Array, Int64Array]:
        rows = (
            of
            if isinstance(of, pa.Table)
            else self.table(of, ["start", "end"])
            if of in TABLES
            else self.sql(of)
        )
        missing = [name for name in ("start", "end") if name not in rows.column_names]
        if missing:
            raise UsageError(
                f"overlap needs the columns start and end; there is no {missing[0]!r} in {', '.join(rows.column_names)}."
            )
        return rows.column("start").to_numpy(), rows.column("end").to_numpy()
