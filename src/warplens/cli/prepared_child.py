"""The child of `profile` that loads the packages for the report while the program runs (decision 40)."""

from __future__ import annotations

from warplens.recording.finishing.prepared import TYPE_CHECKING, Prepared, is_possible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from warplens.handover.pending import Pending
    from warplens.recording.finishing.prepared import Work

_ROOM = 256 << 20  # bytes: where less memory is free, the program and its files need it more
_child: Prepared | None = None


def begin(words: Sequence[str]) -> None:
    """Start the child if the command line `words` records a program. Call it first of all."""
    global _child
    if words and words[0] in ("profile", "launch") and "--help" not in words and is_possible():
        _child = Prepared(_load)


def finish(note: Pending, *, quiet: bool) -> tuple[bool, str | None] | None:
    """Let the child make the report: as `run_expendable`. None where there is no child that is ready."""
    from dataclasses import asdict

    global _child
    child, _child = _child, None
    if child is None:
        return None
    return child.finish({"note": {**asdict(note), "path": str(note.path)}, "quiet": quiet})


def _load() -> tuple[Work, Iterable[object]]:
    import gc
    from pathlib import Path

    from warplens.cli.light import give_back_early, import_lightly
    from warplens.storage.available import available

    if available() < _ROOM:
        raise MemoryError
    gc.disable()  # modules stay: to look for garbage among them is a tenth of the time
    import_lightly()
    give_back_early()
    from warplens.cli import finish_report, finishing
    from warplens.handover import pending

    finishing.load()
    gc.freeze()
    gc.enable()

    def work(request: Mapping[str, Any]) -> bool:
        note = pending.Pending(**{**request["note"], "path": Path(request["note"]["path"])})
        return finish_report.finish_report(note, quiet=request["quiet"])

    return work, _more()


def _more() -> Iterator[object]:
    from warplens.cli import load_ahead
    from warplens.storage.available import available

    if available() >= load_ahead.ROOM:
        yield from load_ahead.one_by_one()
