"""Names of regions and the small numbers that kernels record for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warplens.errors import UsageError
from warplens.model.intrakernel_layout import RESERVED_TAG


class TagTable:
    """Names in the order of their numbers: `TagTable(["load", "compute"])` makes `load` 0 and `compute` 1.

    A kernel's source says names, which become numbers while it is compiled. A name with a slash is shown in its
    group: `producer/load`.
    """

    def __init__(self, tag_names: Iterable[str] = ()) -> None:
        """Take the names.

        UsageError for one that is there twice, is no text, or is one too many (65535).
        """
        self._names: list[str] = []
        self._ids: dict[str, int] = {}
        for name in [tag_names] if isinstance(tag_names, str) else tag_names:
            if name in self._ids:
                raise UsageError(f"the tag {name!r} appears twice: each name has one number")
            self.add(name)

    def add(self, name: str) -> int:
        """Return the number of `name`, a new one if it has none yet."""
        if not isinstance(name, str) or not name:
            raise UsageError(f"a tag is a name, not {name!r}")
        if name not in self._ids:
            if len(self._names) >= RESERVED_TAG:
                raise UsageError(f"no more than {RESERVED_TAG} tags in a table")
            self._ids[name] = len(self._names)
            self._names.append(name)
        return self._ids[name]

    def id(self, name: str | int) -> int:
        """Return the number of a name (a number is taken as it is).

        KeyError with the known names if there is none.
        """
        if isinstance(name, int):
            if not 0 <= name < RESERVED_TAG:
                raise KeyError(f"the tag {name} is not in 0 … {RESERVED_TAG - 1}")
            return name
        try:
            return self._ids[name]
        except KeyError:
            raise KeyError(
                f"no tag {name!r} in this table, which has {', '.join(self._names) or 'none'}"
            ) from None

    def name(self, tag_id: int) -> str:
        """Return the name of a number. IndexError if there is none."""
        if not 0 <= tag_id < len(self._names):
            raise IndexError(f"no tag has the number {tag_id}; there are {len(self._names)}")
        return self._names[tag_id]

    def label(self, tag_id: int) -> str:
        """Return the name of a number.

        `tag 7` where it has none, for a kernel may record any number.
        """
        return self._names[tag_id] if 0 <= tag_id < len(self._names) else f"tag {tag_id}"

    @property
    def names(self) -> list[str]:
        """All names, in the order of their numbers."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TagTable) and other._names == self._names

    def __hash__(self) -> int:
        return hash(tuple(self._names))

    def __repr__(self) -> str:
        return f"TagTable({self._names!r})"
