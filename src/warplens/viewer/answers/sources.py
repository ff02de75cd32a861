"""Source files with the share of the samples in each line: only files that samples of the report were in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warplens.errors import MissingData
from warplens.viewer import limits
from warplens.viewer.answers.plain import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warplens.analysis.cpu.source_lines import HotFile
    from warplens.report.selection import Selection
    from warplens.viewer.answers.loaded_report import Opened

_WHOLE = 2_000  # lines of a file of the program's that are all shown
_NEAR = 5  # lines around one with samples, of longer files and of libraries


def lines_of(opened: Opened, path: str, selection: Selection) -> dict[str, Any]:
    """Return `SourceLines` of the file `path`, of the hottest one where that is empty.

    Raises MissingData if no sample was in that file: no other file is ever read.
    """
    from warplens.analysis.cpu.frames import is_library
    from warplens.analysis.cpu.opcodes import PER, by_line
    from warplens.analysis.cpu.samples import sampled
    from warplens.analysis.cpu.source_lines import hot_files, note, read_source
    from warplens.analysis.cpu.stacks import Weights, top_down

    with opened.asking() as report:
        rows = sampled(report, selection, per=PER)
        place, recorded = selection.place(report), report.path.stat().st_mtime
    if not rows.num_rows:
        raise MissingData(f"does not contain Python samples of running threads{place}.")
    weights = Weights.of(opened.frames, rows)
    tree = top_down(opened.frames, "line", weights)
    files = hot_files(
        opened.frames, tree, int(weights.weight.sum()), instructions=by_line(opened.frames, rows)
    )
    hot = files[0] if not path else next((file for file in files if file.path == path), None)
    if hot is None:
        raise MissingData(f"does not contain samples of {cut(path, limits.NAME)}{place}.")
    source = read_source(hot.path)
    return {
        "files": [
            {"path": cut(file.path), "total": file.total, "self": file.own, "library": is_library(file.path)}
            for file in files[: limits.FILES]
        ],
        "path": cut(hot.path),
        "note": note(hot, source, recorded),
        "lines": list(_lines(hot, source, is_library(hot.path)))[: limits.ROWS],
    }


def _lines(hot: HotFile, source: list[str] | None, library: bool) -> Iterator[dict[str, Any]]:
    from warplens.analysis.cpu.source_lines import around

    last = max([len(source or ()), *hot.lines])
    if source is not None and last <= _WHOLE and not library:
        shown = list(range(1, last + 1))
    else:
        shown = sorted({near for line in hot.lines for near in around(line, _NEAR, last, source=source)})
    for number in shown:
        line = hot.lines.get(number)
        text = (
            None
            if source is None
            else source[number - 1].expandtabs(4).rstrip()
            if number <= len(source)
            else ""
        )
        row: dict[str, Any] = {"line": number, "text": None if text is None else cut(text)}
        if line is not None:
            row |= {"function": cut(line.function), "total": line.total, "self": line.own}
            row |= {"instructions": line.instructions} if line.instructions else {}
        yield row
