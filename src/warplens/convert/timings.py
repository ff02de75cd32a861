"""Reports the progress of finishing, and how long each stage of it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Progress = Callable[[str, float], None]


@dataclass
class Timings:
    """Seconds spent in each stage of finishing."""

    decode: float = 0.0
    order: float = 0.0
    write: float = 0.0
    index: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the body to one stage."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, name, getattr(self, name) + time.perf_counter() - begin)
