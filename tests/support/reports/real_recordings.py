"""Recordings of real GPUs, of other tools, which lie beside the checkout where they are at all: which of them are read each time."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

SMALL = ("mock.sqlite", "rank0.json.gz")  # quick enough for `make check`
EXAMPLES = (
    *SMALL,
    "h100_2gpu_1s.sqlite",
    "tracelens_h100_qwen15_05b.json.gz",
    "tracelens_b200_eager.json.gz",
)


def some(paths: Iterable[str]) -> list[Any]:
    """Return parameters for these files: small ones always, one or two of each kind with slow tests, the others are exhaustive."""
    return [pytest.param(path, marks=_marks(Path(path).name), id=path) for path in paths]


def _marks(name: str) -> Any:
    return () if name in SMALL else pytest.mark.slow if name in EXAMPLES else pytest.mark.exhaustive


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a recording of `tests/golden`. Python 3.11 before 3.11.4 knows no filters."""
    words: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as packed:
        packed.extractall(folder, **words)
