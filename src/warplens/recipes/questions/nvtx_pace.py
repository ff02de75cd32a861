"""The pace of a repeating NVTX range over iterations and ranks: shows ranks that are slower than others.

## What it asks
How long each instance of one range took on each rank (`:name=step`; default: the steps that `step_breakdown`
uses), and whether a rank is slower than the others beyond what chance explains; so, too, whether a host is.

## How it is computed
Instances with numbers in their names (`ProfilerStep#12`) are compared by number, so that ranks may begin
at different steps; others in order of start. A rank's excess in an iteration is its length over the
median of all ranks. A rank is called slow if its excess is positive in more iterations than chance explains
(sign test, p < 0.01 after Bonferroni's correction for the number of ranks) and its median excess is at least 1 %.
A host's excess is the median of its ranks.

## Traps
Ranks that synchronise take equally long whatever the cause: ask for a range that ends before the collective,
or ask `step_pace` or `straggler`.
"""

from __future__ import annotations

import pyarrow as pa

from warplens.analysis.steps.steps import base_name, steps
from warplens.recipes import pace
from warplens.recipes.base import Answer, Summary
from warplens.report import Report, Selection


def part(report: Report, *, name: str = "") -> Summary:
    """Return the instances of the range in one report.

    Args:
        report: one rank's.
        name: of the range; default: the steps of the program.
    """
    rows = steps(report, Selection(), name or None)
    rows = rows.rename_columns(["iteration" if one == "index" else one for one in rows.column_names])
    rows = rows.append_column("device", pa.nulls(rows.num_rows, pa.int64()))
    return {"instances": pace.instances(report, rows)}


def answer(summary: Summary, *, name: str = "") -> Answer:
    """Compare the ranks. MissingData if no iteration has two ranks."""
    rows = summary["instances"]
    return pace.compared(rows, name or base_name(str(rows.column("name")[0].as_py())))
