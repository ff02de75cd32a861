"""The pace of a repeating NVTX range over iterations and ranks: shows ranks that are slower.

## What it asks
The length of each instance of one range on each rank (`:name=step`; default: the steps of
`step_breakdown`), and whether a rank or a host is slower than the others beyond chance.

## How it is computed
Instances with numbers in their names (`ProfilerStep#12`) are compared by number, so that ranks may
begin at different steps; others in order of start. A rank's excess in an iteration is its length less
the median of all ranks. A rank is slow if its excess is positive in more iterations than chance
explains (sign test, p < 0.01 after Bonferroni's correction for the number of ranks) and its median
excess is at least 1 %. A host's excess is the median of its ranks.

## Traps
Ranks that synchronise take equally long, whatever the cause: choose a range that ends before the
collective, or use `step_pace` or `straggler`.
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
        report: report of one rank.
        name: name of the range; default: the steps of the program.
    """
    rows = steps(report, Selection(), name or None)
    rows = rows.rename_columns(["iteration" if one == "index" else one for one in rows.column_names])
    rows = rows.append_column("device", pa.nulls(rows.num_rows, pa.int64()))
    return {"instances": pace.instances(report, rows)}


def answer(summary: Summary, *, name: str = "") -> Answer:
    """Compare the ranks. MissingData if no iteration has two ranks."""
    rows = summary["instances"]
    return pace.compared(rows, name or base_name(str(rows.column("name")[0].as_py())))
