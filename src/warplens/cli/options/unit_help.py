"""The option that lists the units of a family, or explains some: `--help-reports`, `--help-rules`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from warplens import catalog


def help_option(name: str, family: str, noun: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of a command that adds the option `name` for the units of `family`, called `noun`."""

    def shown(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is None or ctx.resilient_parsing:
            return
        if value == "":
            for unit in catalog.units(family):
                click.echo(f"  {unit.id:<22} {unit.summary}")
        else:
            chosen = catalog.units(family) if value.lower() == "all" else [catalog.find(family, each) for each in value.split(",")]
            click.echo("\n\n".join(f"{unit.id}: {unit.doc}" for unit in chosen))
        ctx.exit()

    return click.option(
        name,
        is_flag=False,
        flag_value="",
        is_eager=True,
        expose_value=False,
        callback=shown,
        metavar="[NAME|ALL]",
        help=f"List the {noun}, or explain one, and exit.",
    )
