"""The REPORT argument of the commands: a path as typed, with or without its suffix, or with that of nsys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from warplens.errors import NotAReport
from warplens.handover.naming import SUFFIX, check_readable, located
from warplens.handover.output_name import FOREIGN

if TYPE_CHECKING:
    _Base = click.ParamType[Path]
else:
    _Base = click.ParamType  # generic since click 8.2


class ReportPath(_Base):
    """Return the report that a name means.

    `run`, `run.warplens` and, if nothing else has that name, `run.nsys-rep` all mean the report
    `run.warplens`.

    A file of another tool is one too: `run.sqlite`.
    """

    name = "REPORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path of the chosen report, or of another tool's file.

        Raises NotAReport for what is not there, ReportError for what may not be read.
        """
        check_readable(Path(value))
        path = located(Path(value))
        if path.is_dir():
            return path
        foreign = path.suffix in FOREIGN
        if foreign and not path.exists() and path.with_suffix(SUFFIX).is_dir():
            return path.with_suffix(SUFFIX)
        if path.is_file():  # of another tool: imported when it is opened
            return path
        beside = sorted(found.name for found in path.parent.glob(f"*{SUFFIX}") if found.is_dir())
        here = f"There {'is' if len(beside) == 1 else 'are'}: {', '.join(beside[:5])}{', …' if len(beside) > 5 else ''}."
        raise NotAReport(
            f"There is no report {path}.\n{here if beside else 'Record one: `warplens profile -o NAME PROGRAM`.'}"
        )

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete directories and files."""
        return [CompletionItem(incomplete, type="file")]
