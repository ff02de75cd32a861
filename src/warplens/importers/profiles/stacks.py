"""Stacks as a tree, and a part of a report that holds samples alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from warplens.storage.schema import schema
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, Facts

if TYPE_CHECKING:
    from warplens.storage.writer import PartWriter

Key = TypeVar("Key", bound=Hashable)
_COLUMNS = ("start", "end", "count", "weight", "stack", "kind", "on_cpu", "gil", "exception")


class FrameTree(Generic[Key]):
    """The tree of all stacks, as rows of `frames`."""

    def __init__(self, process: int, described: Callable[[Key], dict[str, Any]]) -> None:
        """`described`: returns the columns of what a key stands for, `kind` and `function` among them."""
        self.rows: list[dict[str, Any]] = []
        self._process = process
        self._described = described
        self._known: dict[tuple[int, Key], int] = {}
        self._python: list[bool] = []  # of each row, whether it or a caller is Python's

    def add(self, stack: Iterable[Key]) -> int:
        """Take a stack, the outermost frame first.

        The key of its innermost frame, -1 for an empty stack.
        """
        parent = -1
        for key in stack:
            parent = self.below(parent, key)
        return parent

    def below(self, parent: int, key: Key) -> int:
        """Return the key of the frame that `parent` called; -1: nobody did."""
        frame = self._known.get((parent, key))
        if frame is None:
            frame = self._known[parent, key] = len(self.rows)
            row = self._described(key)
            above = self.rows[parent] if parent >= 0 else None
            place = {"parent": parent if above else None, "depth": above["depth"] + 1 if above else 0}
            self.rows.append({"frame": frame, "process": self._process, **place, **row})
            self._python.append(row["kind"] == "python" or (parent >= 0 and self._python[parent]))
        return frame

    def is_python(self, frame: int) -> bool:
        """True if the stack that ends in this frame has a Python function."""
        return self._python[frame]


class ThreadSamples:
    """Samples of a thread in the order of time, as columns: there may be millions."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def add(
        self,
        begin: int,
        end: int,
        count: int,
        weight: int,
        stack: int,
        *,
        native: bool = False,
        on_cpu: bool = True,
        gil: bool | None = None,
        exception: bool | None = None,
    ) -> None:
        """Take ticks with the same stack.

        First and last one, how many, ns that they stand for, key of the innermost frame (-1: none).
        """
        row = (
            begin,
            end,
            count,
            weight,
            stack if stack >= 0 else None,
            "native" if native else "python",
            on_cpu,
            gil,
            exception,
        )
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)


@dataclass
class SampledThread:
    """A thread with its samples."""

    tid: int
    samples: ThreadSamples = field(default_factory=ThreadSamples)
    name: str | None = None
    start: int = 0


@dataclass(frozen=True)
class ImportedProfile:
    """Data of a sample file beside its stacks.

    `by`: what wrote it. Times are ns; `end`: of the recording.
    """

    by: str
    threads: Sequence[SampledThread]
    end: int
    diagnostics: Sequence[dict[str, Any]] = ()
    origin: int = 0


def write(part: PartWriter, source: Path, tree: FrameTree[Any], profile: ImportedProfile) -> Facts:
    """Write the tables of the part.

    Its only process has the name of the file, as profiles do not say which program it was.
    """
    process, host = part.key(0), profile.by
    keys = {
        id(thread): process * THREADS_PER_PROCESS + number for number, thread in enumerate(profile.threads)
    }
    span = {"start": profile.origin, "end": profile.end}
    texts = {"host": host, "executable": "", "command": "", "name": source.name}
    part.write(
        "processes",
        [{"process": process, "pid": 0, "parent_pid": 0, **texts, **span, "primary": True, "exited": True}],
    )
    named = [
        {"process": process, "tid": thread.tid, "name": thread.name, "start": thread.start}
        for thread in profile.threads
    ]
    part.write(
        "threads",
        [{"thread": keys[id(thread)], **row} for thread, row in zip(profile.threads, named, strict=True)],
    )
    part.write("frames", tree.rows)
    part.write("samples", _samples(process, profile.threads, list(keys.values())))
    part.write(
        "capture_windows",
        [{"part": part.part, "number": 1, "host": host, **span, "opened_by": "start", "closed_by": "end"}],
    )
    part.write(
        "targets",
        [
            {
                "host": host,
                "boot_id": part.id,
                "os": "",
                "kernel": "",
                "machine": "",
                "cpu": "",
                "cpus": 0,
                "memory": 0,
            }
        ],
    )
    part.write("diagnostics", [{"source": "import", **row} for row in profile.diagnostics])
    sources = {"samples": {"on": True, "by": profile.by}}
    return Facts(
        id=part.id, host=host, boot_id=part.id, origin=profile.origin, end=profile.end, sources=sources
    )


def _samples(process: int, threads: Sequence[SampledThread], keys: Sequence[int]) -> dict[str, Any]:
    """Put the samples of all threads together, in the order of time."""
    lengths = [len(thread.samples.columns["start"]) for thread in threads]
    whole = {
        name: [value for thread in threads for value in thread.samples.columns[name]] for name in _COLUMNS
    }
    order = np.argsort(np.array(whole["start"], np.int64), kind="stable")
    first = process * RANGES_PER_PROCESS
    return {
        "id": np.arange(first, first + len(order)),
        "process": np.full(len(order), process),
        "thread": np.repeat(np.array(keys, np.int64), lengths)[order],
        **{
            name: pa.array(values, schema("samples").field(name).type).take(pa.array(order))
            for name, values in whole.items()
        },
    }
