"""Options as nsys users type them, and where the program begins."""

from __future__ import annotations

import click
import pytest

from warplens.catalog import find
from warplens.cli.options.arguments import split
from warplens.cli.options.nsys_options import LATER_OPTIONS
from warplens.cli.recording import OPTIONS
from warplens.errors import UsageError

OWN = {
    "-o": ("--output", False),
    "--output": ("--output", False),
    "-f": ("--force-overwrite", True),
    "--force-overwrite": ("--force-overwrite", True),
    "--stats": ("--stats", True),
}


@pytest.mark.parametrize(
    ("text", "options", "command"),
    [
        ("-o x prog -o y", ["--output=x"], ["prog", "-o", "y"]),
        ("-ox prog", ["--output=x"], ["prog"]),
        ("--output=x=y prog", ["--output=x=y"], ["prog"]),
        ("--output x -- -prog", ["--output=x"], ["-prog"]),
        ("-f prog", ["--force-overwrite=true"], ["prog"]),
        ("-f true prog", ["--force-overwrite=true"], ["prog"]),
        ("-f false prog", ["--force-overwrite=false"], ["prog"]),
        ("-f=no prog", ["--force-overwrite=false"], ["prog"]),
        ("--stats=TRUE prog", ["--stats=true"], ["prog"]),
        ("--stats true", ["--stats=true"], ["true"]),
        ("--stats -- true x", ["--stats=true"], ["true", "x"]),
        ("-- prog -- x", [], ["prog", "--", "x"]),
        ("- x", [], ["-", "x"]),
        ("", [], []),
    ],
)
def test_split(text: str, options: list[str], command: list[str]) -> None:
    arguments = split(text.split(), OWN)
    assert (arguments.options, arguments.command, arguments.later) == (options, command, [])


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("--gpuctxsw true prog", "--gpuctxsw", "true"),
        ("--gpuctxsw prog", "--gpuctxsw", "true"),
        ("--syscall=process-tree prog", "--syscall", "process-tree"),
        ("-x true prog", "--stop-on-exit", "true"),
        ("-w true prog", "--show-output", "true"),
    ],
)
def test_later_options_are_taken_off(text: str, name: str, value: str) -> None:
    arguments = split(text.split(), OWN)
    assert [(later.name, given) for later, given in arguments.later] == [(name, value)]
    assert arguments.command == ["prog"]


def test_every_later_option_says_whether_it_takes_a_value() -> None:
    assert len(LATER_OPTIONS) > 70
    for name, later in LATER_OPTIONS.items():
        assert name.startswith("-"), name
        assert later.name.startswith("--"), name
        arguments = split([name, "prog"] if later.flag else [name, "some", "prog"], OWN)
        assert arguments.command == ["prog"], name


def test_an_unknown_option_names_near_ones() -> None:
    with pytest.raises(UsageError, match=r"no option --gpuctxws\. Did you mean --gpuctxsw"):
        split(["--gpuctxws=1", "prog"], OWN)
    with pytest.raises(UsageError, match=r"`launch` has no option --delay\.(.|\n)*`warplens launch --help`"):
        split(["--delay", "3", "prog"], OWN, "launch")


@pytest.mark.parametrize("text", ["-o", "--output", "-f=maybe prog", "--syscall"])
def test_wrong_values(text: str) -> None:
    with pytest.raises(UsageError):
        split(text.split(), OWN)


def test_the_table_of_our_options_is_what_profile_has() -> None:
    command = find("cli.commands", "profile").load().command
    context = click.Context(command, info_name="profile")
    options = {
        name: param.opts[-1]
        for param in command.get_params(context)
        if isinstance(param, click.Option)
        for name in param.opts
    }
    assert {name: long for name, (long, _) in OPTIONS.items()} == {**options, "-h": "--help"}
    assert not set(OPTIONS) & set(LATER_OPTIONS)
