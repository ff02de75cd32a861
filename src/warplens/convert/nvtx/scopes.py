"""Scopes of counters and events, as paths."""

from __future__ import annotations

from warplens.spool.definitions import Definitions

_PREDEFINED = {
    1: "",
    2: "/machine",
    3: "/machine/socket",
    4: "/machine/socket/cpu",
    5: "/machine/socket/cpu/thread",
    15: "/machine/socket/cpu/thread",
    16: "/hypervisor",
    17: "/vm",
    18: "/kernel",
    19: "/container",
    20: "/os",
    21: "/process",
    22: "/process/thread",
    31: "/process/thread",
}
_DEEPEST = 32


class Scopes:
    """The scopes of one process."""

    def __init__(self, definitions: Definitions) -> None:
        self._made = {
            (one.domain, one.id): (one.text("path") or "", one.number("parent") or 0)
            for one in definitions.of("scope")
        }

    def path(self, domain: int, number: int) -> str | None:
        """Return a scope's path from the root.

        None for no scope, and for one that was not recorded.
        """
        pieces: list[str] = []
        for _ in range(_DEEPEST):
            if number in _PREDEFINED:
                return _PREDEFINED[number] + "".join(f"/{piece}" for piece in reversed(pieces)) or "/"
            known = self._made.get((domain, number)) or self._made.get((0, number))
            if known is None:
                break
            pieces.append(known[0].strip("/"))
            number = known[1]
        return "".join(f"/{piece}" for piece in reversed(pieces)) or None
