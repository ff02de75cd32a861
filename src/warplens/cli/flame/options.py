"""Options that select samples, for every command that shows samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from warplens.cli.opening import window_option

_OPTIONS = (
    click.option(
        "--process",
        "processes",
        multiple=True,
        metavar="PID|NAME",
        help="Only this process; may be repeated.",
    ),
    click.option(
        "--thread",
        "threads",
        multiple=True,
        metavar="TID|NAME",
        help="Only threads with this id, or with this text in their name.",
    ),
    click.option("--filter-time", metavar="A/B", help="Only this time of the report, e.g. 1s/1s500ms."),
    click.option(
        "--filter-nvtx",
        metavar="RANGE[@DOMAIN][/INDEX]",
        help="Only time of threads inside their own ranges of this name.",
    ),
    window_option,
    click.option(
        "--exceptions", is_flag=True, help="Only while a thread handled an exception (Python samples)."
    ),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select processes, threads and time to a command.

    `--process`, `--thread`, `--filter-time`, `--filter-nvtx`, `--window` and `--exceptions`.
    """
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
