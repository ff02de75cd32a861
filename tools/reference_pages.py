"""Makes the reference pages of the documentation site from the code: tables, units, commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from inspect import cleandoc
from textwrap import dedent

import click

from warplens import catalog
from warplens.catalog import Unit
from warplens.model.tables import TABLES

NOTE = "*Made from the code.*"


def cell(text: str) -> str:
    """Make a text fit into a cell of a Markdown table."""
    return " ".join(text.replace("|", "\\|").split())


def rows(head: tuple[str, ...], body: Sequence[tuple[str, ...]]) -> str:
    """Write a Markdown table; empty where there is no row."""
    if not body:
        return ""
    lines = [head, ("---",) * len(head), *body]
    return "\n".join("| " + " | ".join(cell(part) for part in line) + " |" for line in lines)


def tables() -> Iterator[str]:
    """Describe the tables of a report."""
    yield "# Tables of a report"
    yield "Ask them with `warplens query`, `Report.sql` or any tool that reads Parquet. `dict` is a dictionary of strings; times are ns."
    for table in TABLES.values():
        yield f"## {table.name}\n\n{table.text}"
        if table.sort:
            yield f"Sorted by {', '.join(table.sort)}."
        yield rows(
            ("column", "type", "meaning"),
            [(f"`{column.name}`", column.kind, column.text) for column in table.columns],
        )


def fenced(text: str) -> str:
    """Put fences around indented code: in Markdown its brackets would be links."""
    return re.sub(
        r"(?:^ {4}.*\n?|^\n(?= {4}))+",
        lambda found: f"```\n{dedent(found[0]).strip()}\n```\n",
        text,
        flags=re.MULTILINE,
    )


def unit_text(unit: Unit) -> Iterator[str]:
    """Describe one unit of a family."""
    yield f"## {unit.id}\n\n{unit.summary}"
    yield unit.body
    for title, text in unit.sections.items():
        yield f"### {title}\n\n{fenced(text)}"
    options = [
        (f"`{option.name}`", f"`{option.annotation}`", f"`{option.default}`", option.text)
        for option in unit.options
    ]
    yield rows(("option", "type", "default", "meaning"), options)


def family(name: str, title: str, intro: str) -> Iterator[str]:
    """Describe all units of a family."""
    units = catalog.units(name)
    yield f"# {title}"
    yield intro
    yield "\n".join(f"- [{unit.id}](#{unit.id}): {unit.summary}" for unit in units)
    for unit in units:
        yield from unit_text(unit)


def stats() -> Iterator[str]:
    """Describe the stats."""
    return family(
        "stats.tables",
        "Stats",
        "Computed tables: `warplens stats -r NAME report.warplens`, or `-r NAME1,NAME2` for several.",
    )


def rules() -> Iterator[str]:
    """Describe the rules."""
    return family(
        "rules.checks",
        "Rules",
        "What `warplens analyze report.warplens` looks for; `-r NAME` asks one. A rule whose data the report lacks says so: *not judged*.",
    )


def exporters() -> Iterator[str]:
    """Describe the export formats."""
    return family(
        "exporters.formats",
        "Export formats",
        "`warplens export -t NAME report.warplens` writes a report in another tool's format.",
    )


def importers() -> Iterator[str]:
    """Describe the import formats."""
    return family(
        "importers.formats",
        "Import formats",
        "`warplens import FILE` makes a report of what another tool recorded; every command that takes a report takes such a file too.",
    )


def intrakernel() -> Iterator[str]:
    """Describe the languages whose kernels can record."""
    return family(
        "intrakernel.dsl",
        "In-kernel languages",
        "What a kernel writes to time its own regions, in each language: `from warplens.intrakernel.dsl import NAME`. "
        "[The guide](../guide/intrakernel.md) begins with the first region.",
    )


def parameter(option: click.Option) -> tuple[str, str]:
    """Describe one option: its names with what it takes, and its meaning with the default."""
    takes = option.metavar or ("" if option.is_flag else option.type.name.upper())
    if not option.metavar and isinstance(option.type, click.Choice):
        takes = "|".join(map(str, option.type.choices))
    names = ", ".join([*option.opts, *option.secondary_opts])
    default = f" Default: `{option.default}`." if option.show_default and option.default is not None else ""
    return f"`{names}{' ' + takes if takes else ''}`", f"{option.help or ''}{default}"


def cli() -> Iterator[str]:
    """Describe the commands."""
    units = catalog.units("cli.commands")
    yield "# Commands"
    yield "Each explains itself with `--help`. Without a command, `warplens [OPTIONS] PROGRAM …` is `warplens profile …`."
    for unit in units:
        command: click.Command = unit.load().command
        arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
        usage = " ".join(
            [
                "warplens",
                unit.id.replace("_", "-"),
                "[OPTIONS]",
                *(part.make_metavar(click.Context(command)) for part in arguments),
            ]
        )
        yield f"## {unit.id.replace('_', '-')}\n\n`{usage}`"
        yield re.sub(r"^\s*\x08\n", "", cleandoc(command.help or unit.doc), flags=re.MULTILINE).replace(
            "\x08\n", ""
        )
        if command.epilog:
            text = cleandoc(command.epilog).replace("\x08\n", "").replace("\x08", "").strip()
            yield f"```\n{text}\n```"
        options = [part for part in command.params if isinstance(part, click.Option) and not part.hidden]
        yield rows(("option", "meaning"), [parameter(option) for option in options])


WRITERS: dict[str, Callable[[], Iterator[str]]] = {
    "tables": tables,
    "stats": stats,
    "rules": rules,
    "exporters": exporters,
    "importers": importers,
    "intrakernel": intrakernel,
    "cli": cli,
}


def page(write: Callable[[], Iterator[str]]) -> str:
    """Join what a writer yields into a page, the note below its title."""
    title, *parts = (part.strip() for part in write())
    return "\n\n".join([title, NOTE, *filter(None, parts)]) + "\n"


def pages() -> dict[str, str]:
    """Return the Markdown of each page, by its name."""
    return {name: page(write) for name, write in WRITERS.items()}
