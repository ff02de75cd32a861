"""Samples in Chrome's JSON: the tree of stacks and the samples of threads, behind the events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplens.analysis.cpu.samples import kind_of
from warplens.analysis.dictionaries import codes
from warplens.exporters.chrome.json_text import microseconds
from warplens.exporters.profiles.stacks import Labels, ProfileThreads
from warplens.exporters.tracks import batches, values

if TYPE_CHECKING:
    from warplens.report import Report

_COLUMNS = ("process", "thread", "start", "end", "kind", "count", "on_cpu", "stack")
_AT_ONCE = 1 << 16  # as Python objects


def stacks_and_samples(report: Report) -> Iterator[str]:
    """Yield the members `stackFrames` and `samples` of the document, a comma before each.

    Nothing if there are no samples.
    """
    if not report.tables["samples"]:
        return
    kind = kind_of(report)
    labels, threads = Labels.of(report, lines=True), ProfileThreads(report)
    frames, comma = labels.frames, ""
    yield ',\n"stackFrames":{'
    for position, parent in enumerate(frames.parent.tolist()):
        frame = frames.frame(position)
        about = {"category": frame.module or frame.file or frame.kind, "name": frame.function}
        yield f'{comma}\n"{position}":{json.dumps({**about, **({} if parent < 0 else {"parent": str(parent)})})}'
        comma = ","
    yield '},\n"samples":['
    comma = ""
    for batch in batches(report, "samples", _COLUMNS, most=_AT_ONCE):
        numbers, texts = codes(batch.column("kind"))
        own = numbers == (texts.to_pylist().index(kind) if kind in texts.to_pylist() else -2)
        ran = batch.column("on_cpu").to_numpy(zero_copy_only=False)
        batch = batch.filter(own if kind == "native" else own & ran)
        columns = (values(batch, name).tolist() for name in ("thread", "start", "count"))
        for stack, thread, start, count in zip(
            frames.positions(batch.column("stack")).tolist(), *columns, strict=True
        ):
            pid, tid = threads.ids(thread)
            where = f'"cpu":0,"pid":{pid},"tid":{tid},"ts":{microseconds(start - report.origin)}'
            yield f'{comma}\n{{{where},"name":"samples","sf":"{stack}","weight":{count}}}'
            comma = ","
    yield "\n]"
