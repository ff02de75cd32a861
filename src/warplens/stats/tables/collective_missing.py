"""Ranks that Collectives Wait for.

## What it shows
Why a distributed program hangs: the first collective of each process group that some ranks began and others did not, or in which ranks do
different things.

## Columns
- Group, Sequence: the process group, and the number of the collective in it.
- Name: what the waiting ranks do. Several names: the ranks do different things, and all of them wait.
- Waiting, Missing: ranks that began it; ranks that did not, of those that were recorded.
- Last of Missing: the last collective of the missing ranks in this group.
- Waited (ns): from the begin of the first waiting rank to the last time that was recorded.

## How it is computed
From the table `collectives`, which imported dumps of PyTorch's Flight Recorder fill, and recordings of several ranks. In each group the
numbers of the ranks are compared: a rank at a lower number than others has not begun the next one. A collective that a rank
completed is not listed.

## Traps
- Ranks whose dumps are not in the report are unknown, and not listed as missing.
- Ranks are dumped at slightly different times: in a job that does not hang, the last ranks differ by one or two.
- Where all ranks of a group stand at one number with one name, nothing is missing: look for another group, or at the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# Each rank's last number in a group; the collective behind the lowest of them is the one that ranks wait in. Where all are at one
# number, that collective counts, and is listed if the ranks call it by different names.
_QUERY = """
WITH c AS (
  SELECT coalesce(p.rank, p.process) AS rank, c."group", c.sequence, c.name::VARCHAR AS name, c."start", r.unfinished
  FROM collectives c JOIN processes p USING (process) LEFT JOIN nvtx_ranges r ON c.range = r.id
  WHERE c.sequence IS NOT NULL AND c."group" IS NOT NULL AND c.name NOT IN ('send', 'recv')),
last AS (SELECT "group", rank, max(sequence) AS last, arg_max(name, sequence) AS name FROM c GROUP BY ALL),
edge AS (
  SELECT "group", min(last) + CASE WHEN min(last) < max(last) THEN 1 ELSE 0 END AS sequence, count(*) AS ranks FROM last GROUP BY ALL),
there AS (
  SELECT c."group", c.sequence, list(DISTINCT c.rank ORDER BY c.rank) AS waiting, list(DISTINCT c.name ORDER BY c.name) AS names,
         min(c."start") AS first, bool_or(c.unfinished IS FALSE AND u.any) AS completed
  FROM c JOIN edge e ON c."group" = e."group" AND c.sequence = e.sequence, (SELECT bool_or(unfinished) AS any FROM c) u GROUP BY ALL)
SELECT t."group"::VARCHAR AS "group", t.sequence, names, waiting, first,
       list(l.rank ORDER BY l.rank) FILTER (l.last < t.sequence) AS missing,
       list(DISTINCT l.name || ' ' || l.last) FILTER (l.last < t.sequence) AS last
FROM there t JOIN last l ON l."group" = t."group" JOIN edge e ON e."group" = t."group" WHERE e.ranks > 1 AND NOT coalesce(completed, false)
GROUP BY ALL HAVING missing IS NOT NULL OR len(names) > 1 ORDER BY first, 1"""


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the collectives that ranks wait in; MissingData if there is none."""
    if not report.tables["collectives"]:
        raise MissingData(f"does not contain collective data{selection.place(report)}.")
    rows = report.sql(_QUERY).to_pylist()
    if not rows:
        raise MissingData("does not contain collectives that some ranks began and others did not.")
    end = report.span[1]
    return pa.table(
        {
            "Group": [row["group"] for row in rows],
            "Sequence": [row["sequence"] for row in rows],
            "Name": [", ".join(row["names"]) for row in rows],
            "Waiting": [_ranks(row["waiting"]) for row in rows],
            "Missing": [_ranks(row["missing"] or []) for row in rows],
            "Last of Missing": [", ".join(sorted(row["last"] or [])) for row in rows],
            "Waited (ns)": pa.array([end - row["first"] for row in rows], pa.int64()),
        }
    )


def _ranks(numbers: list[int]) -> str:
    """Write ranks with runs put together: `0-6, 9`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
