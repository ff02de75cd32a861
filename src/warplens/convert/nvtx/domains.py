"""Names of the domains and categories of a process."""

from __future__ import annotations

from dataclasses import dataclass

from warplens.spool.reader import Names
from warplens.spool.strings import Strings


@dataclass(frozen=True)
class Domains:
    """Names by number; what has none is called by its number."""

    names: Names
    strings: Strings

    def name(self, number: int) -> str | None:
        """Return the name of a domain; None for the default one."""
        if not number:
            return None
        name = self.strings.get(self.names.domains.get(number, 0))
        return f"domain {number}" if name is None else name

    def category(self, domain: int, number: int) -> str:
        """Return the name of a category."""
        name = self.strings.get(self.names.categories.get((domain, number), 0))
        return str(number) if name is None else name
