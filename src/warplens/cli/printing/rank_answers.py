"""Prints the answer of a recipe, or writes it to files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warplens.cli.printing import tables
from warplens.cli.printing.output import write_lines
from warplens.cli.printing.words import counted
from warplens.disk.replacing import replacing
from warplens.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.catalog import Unit
    from warplens.recipes.base import Answer, BrokenPart, Place

PARQUET = "parquet"


@dataclass(frozen=True)
class AnswerOutput:
    """Format and place of an answer. `output`: begin of the names of files, None: standard output."""

    form: str
    output: str | None
    rows: int
    unit: str
    overwrite: bool
    quiet: bool

    @classmethod
    def of(
        cls, form: str, output: str | None, *, rows: int, unit: str, overwrite: bool, quiet: bool
    ) -> AnswerOutput:
        """Check the format. UsageError for an unknown one, and for Parquet without a name of files."""
        if form != PARQUET:
            form = tables.format_name(form, pages=True)
        elif output is None:
            raise UsageError("-f parquet writes files: give the begin of their names with -o NAME.")
        return cls(form, output, rows, unit=tables.time_unit(unit), overwrite=overwrite, quiet=quiet)

    def give(
        self, unit: Unit, answer: Answer, paths: Sequence[Place], *, broken: Sequence[BrokenPart]
    ) -> None:
        """Print or write the answer over the reports at `paths`."""
        if self.form == "json":
            self._whole(
                [json.dumps(as_json(answer, broken=[str(one.path) for one in broken]), indent=2)], ".json"
            )
            return
        if self.form == tables.PAGE:
            from warplens.recipes.page import recipe_page

            self._whole(recipe_page(unit, answer, paths, broken=broken).splitlines(), ".html")
            return
        if not self.quiet and (self.output is not None or self.form in ("table", "markdown")):
            for line in answer.lines:
                click.echo(line)
        if self.output is None:
            self._print(answer)
        else:
            for title, table in written(answer).items():
                self._write(Path(f"{self.output}_{title}"), tables.in_unit(table, self.unit))

    def _whole(self, lines: Sequence[str], suffix: str) -> None:
        if self.output is None:
            tables.show(lines)
        else:
            write_lines(
                Path(f"{self.output.removesuffix(suffix)}{suffix}"), iter(lines), overwrite=self.overwrite
            )

    def _write(self, base: Path, table: pa.Table) -> None:
        if self.form == PARQUET:
            _write_parquet(base.with_name(f"{base.name}.parquet"), table, overwrite=self.overwrite)
        else:
            file = base.with_name(base.name + tables.SUFFIXES[self.form])
            write_lines(file, tables.FORMATS[self.form](table, width=0), overwrite=self.overwrite)

    def _print(self, answer: Answer) -> None:
        if self.form == "table" and answer.maps and not self.quiet:
            from warplens.recipes.heat_maps import drawn

            for shown in answer.maps.values():
                tables.show(drawn(shown))
        for title, table in answer.tables.items():
            self._print_table(title, tables.in_unit(table, self.unit))
        if not answer.tables and self.form not in ("table", "markdown"):
            for title, table in written(answer).items():
                self._print_table(title, tables.in_unit(table, self.unit))
            return
        more = [title for title in written(answer) if title not in answer.tables]
        if more and not self.quiet and self.form == "table":
            click.echo(f"\nAlso with -f csv -o NAME: {', '.join(more)}")

    def _print_table(self, title: str, table: pa.Table) -> None:
        is_table = self.form == "table"
        width = tables.terminal_width()
        hidden = max(table.num_rows - self.rows, 0) if self.rows and is_table else 0
        shown, gone = tables.fitted(table.slice(0, self.rows) if hidden else table, width if is_table else 0)
        click.echo(f"\n ** {title.replace('_', ' ')}:\n")
        lines: Iterator[str] = tables.FORMATS[self.form](shown, width=width)
        tables.show(lines)
        if hidden:
            click.echo(f"… and {counted(hidden, 'more row')}; --rows 0 shows all")
        if gone:
            click.echo(f"no room here for {', '.join(gone)}; -f csv has all.")


def written(answer: Answer) -> Mapping[str, pa.Table]:
    """Return all tables of an answer: those for reading, those with details, and the heat maps."""
    from warplens.recipes.heat_maps import as_table

    return {
        **answer.tables,
        **answer.details,
        **{name: as_table(shown) for name, shown in answer.maps.items()},
    }


def as_json(answer: Answer, broken: list[str]) -> dict[str, Any]:
    """Return an answer as JSON takes it: its facts, then each table as a list of rows."""
    return {
        **answer.facts,
        "verdict": list(answer.lines),
        "tables": {name: table.to_pylist() for name, table in written(answer).items()},
        "left_out": broken,
    }


def _write_parquet(file: Path, table: pa.Table, *, overwrite: bool) -> None:
    import pyarrow.parquet as pq

    try:
        if file.is_file() and not overwrite:
            raise UsageError(f"{file} exists; --force-overwrite replaces it.")
        with replacing(file) as partial:
            pq.write_table(table, partial, compression="zstd")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}.") from error
