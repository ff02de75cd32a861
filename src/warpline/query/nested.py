"""Calls that nest, with the time of their own: imports, and traced functions of Python."""

from __future__ import annotations


def nested(table: str, keys: str) -> str:
    """Return the SQL relation (in parentheses) of a table's rows with two more columns, `own` and `outermost`.

    Args:
        table: its rows have id, parent, thread, start and end.
        keys: SQL expressions, separated by commas, in which calls of the same thing agree.

    Returns:
        `own`: ns without what rows with this parent took; `outermost`: no row of the thread with the same keys is around it, so that the
        lengths of such rows hold every ns once.
    """
    before = 'ORDER BY "start", "end" DESC, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING'
    return f"""(
        WITH inner_calls AS (
          SELECT parent AS around, sum("end" - "start")::BIGINT AS ns FROM {table} WHERE parent IS NOT NULL GROUP BY parent),
        placed AS (SELECT *, max("end") OVER (PARTITION BY thread, {keys} {before}) AS reach FROM {table})
        SELECT placed.* EXCLUDE reach, "end" - "start" - coalesce(ns, 0) AS own, reach IS NULL OR "start" >= reach AS outermost
        FROM placed LEFT JOIN inner_calls ON placed.id = inner_calls.around)"""
