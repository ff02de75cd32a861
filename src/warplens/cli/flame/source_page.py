"""The heat map of source lines as a page.

Hottest lines, files, and their lines, each with its own address.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from warplens.analysis.cpu.frames import is_library
from warplens.analysis.cpu.source_lines import HotFile, Line, around, note, read_source
from warplens.cli.flame.load import Flame
from warplens.flows.html.page import heading, page
from warplens.flows.html.words import safe
from warplens.model.words import percent

_HOTTEST = 15  # lines in the list at the top
_STEPS = 10  # of heat
_NEAR = 5  # lines around a hot one, of files that others wrote
_HEAD = (
    '<thead><tr><th class="n">Line</th><th class="n">Total</th><th class="n">Self</th><th></th></tr></thead>'
)
_STYLE = """
.src table{width:100%;margin-bottom:20px}
.src td{padding:0 10px;border:0;max-width:none;font:12px/1.6 ui-monospace,monospace;white-space:pre}
.src tr{background:rgba(224,72,56,var(--heat,0))}.src tr:target{outline:2px solid var(--c0)}.src td.n{color:var(--dim)}
.src td.n.v{color:inherit}.src td:last-child{width:100%}
.src td.i{color:var(--dim);padding-left:40px}a{color:inherit}td.n a{text-decoration:none}td.c{white-space:pre}
.by{margin-right:14px}body{max-width:1400px}
"""


def source_page(
    flame: Flame, files: Sequence[HotFile], *, whole: bool, context: int | None, recorded: float
) -> Iterator[str]:
    """Yield the lines of the page.

    `whole`: every line of files that others wrote, too, of which else those near a hot one are shown: `context` lines around.
    `recorded`: when the report was made, in seconds since 1970.
    """
    hottest = (
        max((hot.total for hot in files), default=0.0),
        max((line.own for hot in files for line in hot.lines.values()), default=0.0),
    )
    sources = {hot.path: read_source(hot.path) for hot in files}
    sections = [
        f"<h1>Source lines</h1><p>{safe(flame.title)}</p>",
        _lines(files, sources),
        _files(files),
        _switch(),
    ]
    for number, hot in enumerate(files, 1):
        every = whole or (context is None and not is_library(hot.path))
        near = None if every else _NEAR if context is None else context
        sections.append(
            _section(number, hot, sources[hot.path], hottest=hottest, near=near, recorded=recorded)
        )
    yield from page(
        f"source lines of {flame.title.partition(':')[0]}", *sections, style=_STYLE + _heat()
    ).splitlines()


def _lines(files: Sequence[HotFile], sources: dict[str, list[str] | None]) -> str:
    """The list of lines that most samples ended in."""
    found = [
        (line.own, number, at, hot)
        for number, hot in enumerate(files, 1)
        for at, line in hot.lines.items()
        if line.own
    ]
    rows = []
    for own, number, at, hot in sorted(found, key=lambda row: (-row[0], row[1], row[2]))[:_HOTTEST]:
        line = hot.lines[at]
        text = _text(sources[hot.path], at, line).strip()
        place = f'<a href="#{_id(number, at)}">{safe(Path(hot.path).name)}:{at}</a>'
        rows.append(
            f'<tr>{_shares(line.total, own)}<td>{place}</td><td class="w"><code>{safe(text)}</code></td></tr>'
        )
    return heading("Where samples ended") + _table(("Line", ""), rows)


def _files(files: Sequence[HotFile]) -> str:
    rows = [
        f'<tr>{_shares(hot.total, hot.own)}<td class="w"><a href="#f{number}">{safe(hot.path)}</a></td></tr>'
        for number, hot in enumerate(files, 1)
    ]
    return heading("Files", "Total: samples that came by. Self: samples that ended there.") + _table(
        ("File",), rows
    )


def _table(names: Sequence[str], rows: Sequence[str]) -> str:
    heads = "".join(f"<th>{safe(name)}</th>" for name in names)
    numbers = '<th class="n">Total (%)</th><th class="n">Self (%)</th>'
    return f'<div class="scroll"><table><thead><tr>{numbers}{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _switch() -> str:
    """Two buttons before the lines that choose the meaning of the colour.

    The page has no script, so a style reads which one is on.
    """
    buttons = "".join(
        f'<input type="radio" name="by" id="by-{name}"{on}><label class="by" for="by-{name}"> {text}</label>'
        for name, text, on in (("total", "colour by total", " checked"), ("own", "by self", ""))
    )
    return heading("Lines") + buttons


def _heat() -> str:
    steps = range(1, _STEPS + 1)
    return "".join(
        f"#by-{name}:checked~.src .{name[0]}{n}{{--heat:{0.7 * n / _STEPS:.2f}}}"
        for name in ("total", "own")
        for n in steps
    )


def _section(
    number: int,
    hot: HotFile,
    source: list[str] | None,
    hottest: tuple[float, float],
    near: int | None,
    recorded: float,
) -> str:
    last = max([len(source or ()), *hot.lines])
    if source is None:
        shown = sorted(hot.lines)
    elif near is None:
        shown = list(range(1, last + 1))
    else:
        shown = sorted({at for line in hot.lines for at in around(line, near, last, source=source)})
    rows, before = [], 0
    for at in shown:
        if source is not None and at != before + 1:
            rows.append('<tr><td class="n">⋮</td><td></td><td></td><td></td></tr>')
        rows.append(
            _row(
                _id(number, at),
                at,
                hot.lines.get(at),
                text=_text(source, at, hot.lines.get(at)),
                hottest=hottest,
            )
        )
        before = at
    about = f"{percent(hot.total, 1)} of the samples came by, {percent(hot.own, 1)} ended here"
    told = note(hot, source, recorded)
    return (
        f'<div class="src" id="f{number}"><h3>{safe(hot.path)}</h3><p class="dim">{about}{f"; {told}" if told else ""}</p>'
        f'<div class="scroll"><table>{_HEAD}<tbody>\n{chr(10).join(rows)}\n</tbody></table></div></div>'
    )


def _row(name: str, at: int, line: Line | None, text: str, hottest: tuple[float, float]) -> str:
    number = f'<td class="n"><a href="#{name}">{at}</a></td>'
    if line is None:
        return f'<tr id="{name}">{number}<td></td><td></td><td>{safe(text)}</td></tr>'
    heat = " ".join(
        f"{letter}{math.ceil(_STEPS * math.sqrt(share / most))}"  # the root, so that a hundredth can still be seen
        for letter, share, most in zip("to", (line.total, line.own), hottest, strict=True)
        if share > 0
    )
    shares = f'<td class="n v">{_share(line.total)}</td><td class="n v">{_share(line.own)}</td>'
    below = (
        f'<tr><td></td><td></td><td></td><td class="i">{safe(line.instructions)}</td></tr>'
        if line.instructions
        else ""
    )
    return f'<tr id="{name}" class="{heat}" title="{safe(line.function)}">{number}{shares}<td>{safe(text)}</td></tr>{below}'


def _text(source: list[str] | None, at: int, line: Line | None) -> str:
    if source is None:
        return f"in {line.function}" if line is not None else ""
    return source[at - 1].expandtabs(4).rstrip() if at <= len(source) else ""


def _id(number: int, line: int) -> str:
    """The address of a line: of the first file as other pages have it."""
    return f"L{line}" if number == 1 else f"f{number}L{line}"


def _shares(*shares: float) -> str:
    return "".join(f'<td class="n">{100 * share:.1f}</td>' for share in shares)


def _share(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 else ""
