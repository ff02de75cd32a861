"""What the domains and categories of a process are called."""

from __future__ import annotations

from dataclasses import dataclass

from warpline.spool.reader import Names
from warpline.spool.strings import Strings


@dataclass(frozen=True)
class Domains:
    """Names by number; what has none is called by its number."""

    names: Names
    strings: Strings

    def name(self, number: int) -> str | None:
        """Return the name of a domain; None for the default one."""
        return (self.strings.get(self.names.domains.get(number, 0)) or f"domain {number}") if number else None

    def category(self, domain: int, number: int) -> str:
        """Return the name of a category."""
        return self.strings.get(self.names.categories.get((domain, number), 0)) or str(number)
