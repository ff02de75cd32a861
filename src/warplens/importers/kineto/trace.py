"""One trace while its tables are written: the read events, their processes and threads."""

from __future__ import annotations

from functools import cached_property

from warplens.importers.kineto.identity import KinetoIdentity
from warplens.importers.kineto.parsed import ParsedTrace


class KinetoTrace(ParsedTrace):
    """A trace with the processes and threads of its events."""

    @cached_property
    def identity(self) -> KinetoIdentity:
        """Processes and threads by lane.

        Made at the first use, which takes the columns of lanes.
        """
        return KinetoIdentity.of(self)
