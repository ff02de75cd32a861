"""The commands, found and run by name.

Nothing heavy is imported before a command asks for it: `profile` starts the program first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from warplens import catalog
from warplens._version import __version__
from warplens.cli.checks import packages
from warplens.cli.light import import_lightly
from warplens.cli.printing.messages import BROKEN_PIPE, INTERRUPTED, complain, drop_output
from warplens.errors import UsageError, WarplensError

FAMILY = "cli.commands"
_HELP = """\b
Show where the time of a program goes: annotate, record, query and view it.

\b
  warplens profile -o run python train.py     record a program
  warplens stats run.warplens                 where the time went
  warplens timeline run.warplens              the same, in time
"""


class AtOnce(int):
    """An exit code with which the process ends at once, after an error for which memory was short.

    CPython 3.14 may crash at its exit then, and Arrow where its objects are freed, so `error` keeps those of the traceback.
    """

    error: BaseException | None = None


class _ReaderGone(Exception):
    """The reader of our output has gone, e.g. `| head`: no error. click would turn a BrokenPipeError into exit code 1."""


@contextmanager
def _broken_pipes_told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderGone from error


class Commands(click.Group):
    """The commands of the catalog, imported only when called.

    Without a command's name, `profile` is meant.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [unit.id.replace("_", "-") for unit in catalog.units(FAMILY)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None where there is none of that name."""
        if cmd_name.replace("_", "-") not in self.list_commands(ctx):
            return None
        command: click.Command = catalog.find(FAMILY, cmd_name).load().command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the first line of their docstrings, without importing them."""
        rows = [(unit.id.replace("_", "-"), unit.summary) for unit in catalog.units(FAMILY)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `profile` in front where options or a program come first."""
        if not args:
            args = ["--help"]
        own = {*ctx.help_option_names, *(name for param in self.get_params(ctx) for name in param.opts)}
        if args and args[0] not in own and args[0] not in self.list_commands(ctx):
            if not args[0].startswith("-"):
                self._refuse_typo(ctx, args[0])
            args = ["profile", *args]
        return super().parse_args(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse; this prints --help."""
        with _broken_pipes_told():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _broken_pipes_told():
            return super().invoke(ctx)

    def _refuse_typo(self, ctx: click.Context, word: str) -> None:
        import difflib
        import shutil

        near = difflib.get_close_matches(word, self.list_commands(ctx), n=1, cutoff=0.75)
        if near:
            raise UsageError(
                f"There is no command {word!r}. Did you mean `warplens {near[0]}`?\n"
                f"To record a program of that name: warplens profile {word}"
            )
        if shutil.which(word) is None:
            raise UsageError(
                f"{word!r} is neither a command nor a program.\n"
                f"Commands: {', '.join(self.list_commands(ctx))}. `warplens --help` explains them."
            )


@click.group(
    cls=Commands,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    subcommand_metavar="COMMAND …",
    epilog="Without a command, `warplens [OPTIONS] PROGRAM …` records PROGRAM.",
)
@click.version_option(
    __version__, "--version", "-v", "-V", prog_name="warplens", message="%(prog)s %(version)s"
)
def commands() -> None:
    """Hold the commands together."""


def _names(ctx: click.Context) -> Iterator[str]:
    """Yield the names of the options of a command."""
    for param in ctx.command.get_params(ctx):
        if isinstance(param, click.Option) and not param.hidden:
            yield from (*param.opts, *param.secondary_opts)


def run(arguments: Sequence[str] | None) -> int:
    """Run one command line and return its exit code.

    What goes wrong is printed here and nowhere else.
    """
    import_lightly()
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
    try:
        code = commands.main(
            list(arguments) if arguments is not None else None, prog_name="warplens", standalone_mode=False
        )
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except WarplensError as error:
        complain(str(error))
        return error.exit_code
    except click.NoSuchOption as error:
        from warplens.cli.options.arguments import proposed

        path, known = (error.ctx.command_path, [*_names(error.ctx)]) if error.ctx else ("warplens", [])
        complain(
            f"`{path}` has no option "
            f"{error.option_name}.{proposed(error.option_name, known)}\n`{path} --help` shows the "
            "usage."
        )
        return error.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "warplens"
        complain(error.format_message() + f"\n`{path} --help` shows the usage.")
        return error.exit_code
    except click.ClickException as error:
        complain(error.format_message())
        return error.exit_code
    except ModuleNotFoundError as error:
        if error.name not in packages.READER:
            raise
        complain(f"{error.name} is not installed, and this command needs it.\n{packages.how_to_install()}")
        return 1
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except MemoryError as error:
        complain(
            "there is too little memory for this: "
            f"{next(iter(str(error).splitlines()), 'nothing is left')}.\nAsk about less of it."
        )
        at_once = AtOnce(1)
        at_once.error = error
        return at_once
    except (_ReaderGone, BrokenPipeError):
        drop_output()
        return BROKEN_PIPE
    except OSError as error:
        what = (
            f"{error.filename}: "
            if error.filename
            else ""
            if error.errno is None
            else "cannot write the output: "
        )
        complain(f"{what}{error.strerror or error}.")
        drop_output()
        return 1
