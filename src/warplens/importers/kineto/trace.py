"""One trace while its tables are written: what was read, and which process and thread each event belongs to."""

from __future__ import annotations

from functools import cached_property

from warplens.importers.kineto.identity import Identity
from warplens.importers.kineto.parsed import ParsedTrace


class Trace(ParsedTrace):
    """A trace with the processes and threads of its events."""

    @cached_property
    def identity(self) -> Identity:
        """Processes and threads by lane; made at the first use, which takes the columns of lanes."""
        return Identity(self)
