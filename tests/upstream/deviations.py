"""Where `warplens.nvtx` differs from PyPI nvtx on purpose, case by case of its tests; docs/explain/nvtx-migration.md tells users."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """Cases (a pattern over `file::test[parameters]`) that are expected to fail in these modes."""

    cases: str
    modes: tuple[str, ...]
    reason: str


_LIVE = "a decorated function can be heard by a tool that attaches later, so it is a wrapper also while there is none"
_BYTES = (
    "a list of bytes of several lengths travels as JSON, not as an array whose elements are padded with NULs"
)
_LAZY = (
    "a counter is announced with its first sample, for a tool may attach after it was made; these have none"
)
_REAL = "there is no dummy counter: a tool may attach later, so get_counter() gives the real one"
_ON = "a profile that is enabled stays so where no tool listens yet"

DEVIATIONS = (
    Deviation("test_basic.py::test_annotate_decorator[[]*", ("silent",), _LIVE),
    Deviation("test_basic.py::test_pickle_annotate[[]*", ("silent",), _LIVE),
    Deviation("test_payloads.py::test_list_tuple[[]values4-*", ("attached",), _BYTES),
    Deviation("test_counters.py::test_get_counter_duplicate_same_params[[]*", ("attached",), _LAZY),
    Deviation("test_counters.py::test_get_counter_duplicate_same_params[[]*", ("silent", "disabled"), _REAL),
    Deviation("test_profiler.py::test_profiler", ("silent",), _ON),
)
