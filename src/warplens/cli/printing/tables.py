"""Tables as text: for reading here (table, markdown), for programs in `records`."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from warplens.cli.printing.records import as_csv, as_json, as_spreadsheet, as_tsv, written
from warplens.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_UNIT_NAMES = {
    "nsec": "ns",
    "usec": "us",
    "msec": "ms",
    "sec": "s",
    "nanoseconds": "ns",
    "microseconds": "us",
    "milliseconds": "ms",
    "seconds": "s",
}
_LONGEST_TEXT = 100
# What a narrow terminal shows last, the least telling first.
_SPARE = ("StdDev", "Med", "Min", "Style", "Max", "Avg", "Threads", "Samples")
_SHORT_NAME = 24
_GAP = "  "
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\|<&[`*"})
# What a terminal obeys, and what changes the order of what is read there.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def time_unit(text: str) -> str:
    """Return `ns`, `us`, `ms` or `s` for that, or for a beginning of nsec, usec, msec, sec.

    UsageError for others.
    """
    if text in UNITS:
        return text
    units = {short for name, short in _UNIT_NAMES.items() if text and name.startswith(text)}
    if len(units) != 1:
        raise UsageError(
            f"no time unit {text!r}; there are: {', '.join(UNITS)} (also nsec, usec, msec, sec)."
        )
    return units.pop()


def in_unit(table: pa.Table, unit: str) -> pa.Table:
    """Return `table` with its `(ns)` columns in `unit` and named so.

    Integers become floats, nothing is rounded away.
    """
    if unit == "ns":
        return table
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns.append(
            pc.divide(pc.cast(column, pa.float64(), safe=False), float(UNITS[unit]))
            if name.endswith("(ns)")
            else column
        )
    names = [name.replace("(ns)", f"({unit})") for name in table.column_names]
    return pa.table(columns, names=names).replace_schema_metadata(table.schema.metadata)


def fitting_unit(table: pa.Table) -> str:
    """Return the unit in which the largest time of a table has few digits."""
    import pyarrow.compute as pc

    columns = [table.column(name) for name in table.column_names if name.endswith("(ns)")]
    most = max((abs(pc.max(column).as_py() or 0) for column in columns if len(column)), default=0)
    return next((unit for unit, from_ns in (("ms", 10_000_000), ("us", 10_000)) if most >= from_ns), "ns")


def telling(table: pa.Table) -> pa.Table:
    """Return a table without standard deviations, and without columns that are zero or empty in every row."""
    kept = [
        name
        for name, number in zip(table.column_names, _numeric(table), strict=True)
        if (number and _is_key(name))
        or (name.split(" ")[0] != "StdDev" and _tells(table.column(name), number))
    ]
    return table.select(kept) if table.num_rows else table


def _tells(column: pa.ChunkedArray, number: bool) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not number and not pa.types.is_string(column.type):
        return bool(column.null_count < len(column))
    return bool(pc.any(pc.fill_null(pc.not_equal(column, 0 if number else ""), False)).as_py())


def terminal_width() -> int:
    """Columns to keep within: the terminal's or $COLUMNS.

    0 (no limit) where the output is neither.
    """
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return max(shutil.get_terminal_size((80, 24)).columns, 40)
    return 0


def printable(text: str) -> str:
    """Return `text` in one line: control characters shown as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shorten(text: str, width: int) -> str:
    """Cut `text` to `width` characters, the last one `…` where something was cut."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def apart(texts: Iterable[str], width: int) -> dict[str, str]:
    """Cut each of `texts` to `width` characters in the middle, at `…`.

    Those that would look the same, before they first differ.
    """
    cut = {text: _squeezed(text, width) for text in texts}
    alike: dict[str, list[str]] = {}
    for text, short in cut.items():
        alike.setdefault(short, []).append(text)
    head = width // 3
    for same in alike.values() if head > 1 else ():
        if len(same) > 1:
            first, last = min(same), max(same)
            at = next(
                (index for index, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first)
            )
            rests = apart([text[at:] for text in same], width - head - 1)
            cut.update({text: f"{text[:head]}…{rests[text[at:]]}" for text in same})
    return cut


def _squeezed(text: str, width: int) -> str:
    tail = max(width - 1, 0) // 2
    return (
        text
        if len(text) <= width
        else shorten(text[: len(text) - tail], width - tail) + text[len(text) - tail :]
    )


def _decimals(name: str) -> int:
    for unit, places in (("(us)", 3), ("(ms)", 3), ("(s)", 6), ("(MB)", 3), ("(MB/s)", 3)):
        if name.endswith(unit):
            return places
    return 1


def _cell(value: Any, places: int | None) -> str:
    """One value for reading: thousands separated, `places` decimals (None: as many as it takes)."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if places is None and 1e6 <= abs(value) < 1e15:
            places = 0  # six digits would make an exponent of it
        return f"{value:,.{places}f}" if places is not None else f"{value:,.6g}"
    return printable(value if isinstance(value, str) else written(value))


def _numeric(table: pa.Table) -> list[bool]:
    import pyarrow as pa

    return [
        pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
        for f in table.schema
    ]


_KEYS = frozenset(
    (
        *(
            "pid",
            "tid",
            "endtid",
            "process",
            "thread",
            "end_thread",
            "id",
            "parent",
            "rangeid",
            "parentid",
            "category_id",
        ),
        *("task", "counter", "event", "schema", "object", "target", "identifier"),
        *(
            "corrid",
            "correlation",
            "devid",
            "device",
            "gpu",
            "ctx",
            "context",
            "greenctx",
            "strm",
            "stream",
            "api",
            "graph",
            "graph_node",
            "captured",
        ),
        *("rank", "local_rank", "result"),
    )
)


def _is_key(name: str) -> bool:
    # Numbers that name something are not amounts: no thousands separators.
    return name.lower() in _KEYS


def _whole(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind))


def _text_cells(table: pa.Table) -> list[list[str]]:
    """Each column as strings for reading."""
    result = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _is_key(name) and _whole(column.type):
            result.append(["" if value is None else str(value) for value in column.to_pylist()])
        else:
            places = _decimals(name) if "(" in name else None
            result.append([_cell(value, places) for value in column.to_pylist()])
    return result


def _lines(widths: Sequence[int], limit: int) -> list[list[int]]:
    """Share columns out over as many lines as `limit` needs.

    Later lines are indented by the gap.
    """
    lines: list[list[int]] = [[]]
    used = 0
    for index, width in enumerate(widths):
        indent = len(_GAP) if len(lines) > 1 or lines[-1] else 0
        if limit and lines[-1] and used + len(_GAP) + width > limit:
            lines.append([])
            used = 0
            indent = len(_GAP)
        used += indent + width
        lines[-1].append(index)
    return lines


def fitted(table: pa.Table, width: int) -> tuple[pa.Table, list[str]]:
    """Leave out the spare columns of a summary that `width` (0: no limit) has no room for.

    Return it and their names.
    """
    names = [name for word in _SPARE for name in table.column_names if name.split(" ")[0] == word]
    if not width or not names or not table.num_rows:
        return table, []
    cells = dict(zip(table.column_names, _text_cells(table), strict=True))
    widths = {name: max([len(name), *map(len, column)]) for name, column in cells.items()}
    last = table.column_names[-1]
    widths[last] = min(widths[last], _SHORT_NAME)  # the name can be cut, but not to nothing
    gone: list[str] = []
    while names and sum(widths.values()) + len(_GAP) * (len(widths) - 1) > width:
        gone.append(names.pop(0))
        del widths[gone[-1]]
    return table.select(list(widths)), gone


def _apart(cells: list[str], width: int) -> list[str]:
    cut = apart((text for text in cells if len(text) > width), width)
    return [cut.get(text, text) for text in cells]


def as_table(table: pa.Table, *, width: int = 0, header: bool = True) -> Iterator[str]:
    """Lines for reading: numbers right-aligned and whole, text cut at `…`.

    Rows fold where `width` (0: none) is too small.
    """
    numeric = _numeric(table)
    cells = _text_cells(table)
    names = table.column_names
    widths = [
        max([len(name), *map(len, column)])
        if number
        else min(max([len(name), *map(len, column)]), _LONGEST_TEXT)
        for name, column, number in zip(names, cells, numeric, strict=True)
    ]
    if width:
        texts = [index for index, number in enumerate(numeric) if not number]
        excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
        # The last text column (the name) gives way first, down to 16 characters, then those before it. Where all
        # of them have too little to give, rows fold.
        spare = {index: max(widths[index] - max(16, len(names[index])), 0) for index in texts}
        if 0 < excess <= sum(spare.values()):
            for index in reversed(texts):
                give = min(excess, spare[index])
                widths[index] -= give
                excess -= give
        if excess > 0:
            widths = [
                min(size, width - len(_GAP)) if not numeric[index] else size
                for index, size in enumerate(widths)
            ]
    lines = _lines(widths, width)
    cells = [
        cell if number else _apart(cell, size)
        for cell, number, size in zip(cells, numeric, widths, strict=True)
    ]
    names = [
        name if number else shorten(name, size)
        for name, number, size in zip(names, numeric, widths, strict=True)
    ]

    def row(values: Sequence[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            parts = [values[i].rjust(widths[i]) if numeric[i] else values[i].ljust(widths[i]) for i in line]
            yield ((_GAP if number else "") + _GAP.join(parts)).rstrip()

    if header:
        yield from row(names)
        yield "-" * max(
            sum(widths[i] for i in line) + len(_GAP) * (len(line) - 1 + (number > 0))
            for number, line in enumerate(lines)
        )
    for values in zip(*cells, strict=True):
        yield from row(values)


def as_markdown(table: pa.Table, *, width: int = 0, header: bool = True) -> Iterator[str]:
    """A pipe table.

    What means something in Markdown or HTML is escaped, so that a name is no picture, link or tag.
    """
    numeric = _numeric(table)
    if header:
        yield "| " + " | ".join(name.translate(_MARKS) for name in table.column_names) + " |"
        yield "|" + "|".join("--:" if number else "---" for number in numeric) + "|"
    for values in zip(*_text_cells(table), strict=True):
        yield "| " + " | ".join(value.translate(_MARKS) for value in values) + " |"


Format = Callable[..., Iterator[str]]
PAGE = "html"  # a whole page, with a plot; see flows.html.stat_page
FORMATS: dict[str, Format] = {
    "table": as_table,
    "csv": as_csv,
    "spreadsheet": as_spreadsheet,
    "tsv": as_tsv,
    "json": as_json,
    "markdown": as_markdown,
}
SUFFIXES = {
    "table": ".txt",
    "csv": ".csv",
    "spreadsheet": ".csv",
    "tsv": ".tsv",
    "json": ".json",
    "markdown": ".md",
    PAGE: ".html",
}
_ALIASES = {"column": "table", "md": "markdown", ".": "table", "": "table"}


def format_name(text: str, *, pages: bool = False) -> str:
    """Return the key of FORMATS for `text`, or PAGE if there are `pages`.

    UsageError for others. nsys' `column` is `table`.
    """
    known = [*FORMATS, PAGE] if pages else list(FORMATS)
    name = _ALIASES.get(text, text)
    if name not in known:
        raise UsageError(f"no format {text!r}; there are: {', '.join(known)}.")
    return name


def show(lines: Iterable[str]) -> None:
    """Print lines without escape sequences that a terminal would obey.

    If standard output is no terminal, in few writes and unchanged.
    """
    harmless = sys.stdout.isatty()
    for line in lines:
        sys.stdout.write(
            (_COMMANDS.sub(lambda found: printable(found[0]), line) if harmless else line) + "\n"
        )
