"""The recording options for commands made with click."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from warplens.cli.options.argument import Argument
from warplens.cli.options.capture_arguments import ARGUMENTS


def click_options(arguments: Iterable[Argument] = ARGUMENTS) -> list[click.Option]:
    """Return an option of click for each; their values are texts, and booleans for flags."""
    return [
        flag(*argument.names, help=argument.help) if not argument.value else _valued(argument)
        for argument in arguments
    ]


def flag(*names: str, help: str) -> click.Option:
    """Return a flag that can be typed with a value, too, as those of nsys."""
    return click.Option(
        list(names), type=bool, is_flag=False, default=False, metavar="[true|false]", help=help
    )


def given(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the typed options from click's parameters, as `capture_options` takes them."""
    texts = {}
    for name, value in values.items():
        if value is not None and value is not False:
            texts["--" + name.replace("_", "-")] = "true" if value is True else str(value)
    return texts


def _valued(argument: Argument) -> click.Option:
    name = argument.long.removeprefix("--").replace("-", "_")  # else click takes the first long name
    return click.Option([*argument.names, name], metavar=argument.value, help=argument.help)
