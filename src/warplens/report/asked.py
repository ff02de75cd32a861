"""The interface of an open report for the modules of this package.

`Report` implements it, and imports them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.store import Piece


class AskedReport(Protocol):
    """The questions of `Report` that selections, windows, row groups and payloads need answered.

    Their meaning is documented there.
    """

    @property
    def path(self) -> Path:
        """The report's directory."""
        ...

    @property
    def origin(self) -> int:
        """Begin of the run, ns."""
        ...

    @property
    def end(self) -> int:
        """End of the run, ns."""
        ...

    @property
    def windowed(self) -> bool:
        """Whether this is one window of the capture only."""
        ...

    def pieces(self, table: str) -> list[Piece]:
        """Return the Parquet files that hold a table."""
        ...

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table as Arrow."""
        ...

    def sql(
        self, text: str, params: Sequence[Any] | dict[str, Any] | None = None, *, untrusted: bool = False
    ) -> pa.Table:
        """Run SQL over the tables and return the result."""
        ...
