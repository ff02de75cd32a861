"""The options that list or explain units.

`--help-reports`, `--help-rules`, `--help-formats`, `--help-tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from warplens import catalog
from warplens.catalog import Unit

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def help_option(name: str, family: str, noun: str) -> Decorator:
    """Return the decorator of a command that adds the option `name` for the units of `family`.

    They are called `noun`.
    """
    return _option(
        name,
        noun,
        catalog.family(family).noun,
        texts=lambda: {unit.id: (unit.summary, _of_unit(unit)) for unit in catalog.units(family)},
    )


def help_tables(name: str) -> Decorator:
    """Return the decorator of a command that adds the option `name` for the tables of a report."""

    def texts() -> Mapping[str, tuple[str, str]]:
        from warplens.model.tables import TABLES

        return {table.name: (table.text, table.described) for table in TABLES.values()}

    return _option(name, "tables and columns", "table", texts=texts)


def _of_unit(unit: Unit) -> str:
    """Explain a unit: its docstring, then its options."""
    options = [
        f"- {option.name} ({option.annotation} = {option.default}): {option.text}" for option in unit.options
    ]
    return "\n".join([f"{unit.id}: {unit.doc.rstrip()}", *(["", "## Options", *options] if options else [])])


def _option(
    name: str, plural: str, noun: str, texts: Callable[[], Mapping[str, tuple[str, str]]]
) -> Decorator:
    """Return the decorator; `texts` gives the summary and the whole text of each name."""

    def shown(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is None or ctx.resilient_parsing:
            return
        known = texts()
        if value == "":
            for each, (summary, _) in known.items():
                click.echo(f"  {each:<22} {summary}")
        else:
            chosen = (
                known.values()
                if value.lower() == "all"
                else [catalog.named(noun, each, known) for each in value.split(",")]
            )
            click.echo("\n\n".join(text for _, text in chosen))
        ctx.exit()

    return click.option(
        name,
        is_flag=False,
        flag_value="",
        is_eager=True,
        expose_value=False,
        callback=shown,
        metavar="[NAME|ALL]",
        help=f"List the {plural}, or explain one, and exit.",
    )
