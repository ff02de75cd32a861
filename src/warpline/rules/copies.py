"""What rules about copies say alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpline.errors import MissingData
from warpline.query.gpu_ops import during

if TYPE_CHECKING:
    from warpline.query import Report, Selection

_ONE_VALUE = 16  # bytes: a number, or a complex one


def kinds_known(report: Report) -> None:
    """Raise MissingData where there are copies, and of none is said which memory it used."""
    rows = report.sql("SELECT count(*) AS number, count(coalesce(source_kind, destination_kind)) AS known FROM memcpys").to_pylist()[0]
    if rows["number"] and not rows["known"]:
        raise MissingData("does not say which memory its copies used.")


def number_of_copies(number: int, what: str) -> str:
    """Return e.g. `1 synchronous copy`, `2,500 synchronous copies`."""
    return f"{number:,} {what} {'copy' if number == 1 else 'copies'}"


def single_values(report: Report, selection: Selection, condition: str) -> str:
    """Return a sentence on how many of the copies bring a single value to the host; empty where none does."""
    few = f"m.kind = 'Device-to-Host' AND m.bytes <= {_ONE_VALUE}"
    where = f"({condition}) AND {few} AND {during(report, selection, 'a.')}"
    number = report.sql(f"SELECT count(*) FROM cuda_api a JOIN memcpys m ON m.api = a.id WHERE {where}").column(0)[0].as_py()
    if not number:
        return ""
    return f" {number:,} of them {'brings' if number == 1 else 'bring'} a single value to the host, as tensor.item() does."
