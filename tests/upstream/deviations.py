"""Where `warpline.nvtx` differs from PyPI nvtx on purpose, case by case of its tests; docs/guide/nvtx-migration.md tells users."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """Cases (a pattern over `file::test[parameters]`) that are expected to fail in these modes."""

    cases: str
    modes: tuple[str, ...]
    reason: str


_LIVE = "a decorated function can be heard by a tool that attaches later, so it is a wrapper also while there is none"
_BYTES = "a list of bytes of several lengths travels as JSON, not as an array whose elements are padded with NULs"

DEVIATIONS = (
    Deviation("test_basic.py::test_annotate_decorator[[]*", ("silent",), _LIVE),
    Deviation("test_basic.py::test_pickle_annotate[[]*", ("silent",), _LIVE),
    Deviation("test_payloads.py::test_list_tuple[[]values4-*", ("attached",), _BYTES),
)
