"""Make a report from another tool's recording."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from warplens.cli.finishing import progress_bar
from warplens.cli.light import give_back_early
from warplens.cli.options.flags import FlagCommand
from warplens.cli.options.unit_help import help_option
from warplens.cli.printing.words import counted, short_path
from warplens.disk.files import rename
from warplens.handover.destination import destination

_TOLD = {
    "kernels": "kernel",
    "memcpys": "memcpy",
    "cuda_api": "API call",
    "nvtx_ranges": "NVTX range",
    "samples": "sampled stack",
}


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  nsys export -t sqlite run.nsys-rep && warplens import run.sqlite
  warplens import -o old.warplens run.sqlite && warplens stats old.warplens
  warplens import -o ranks.warplens traces_of_all_ranks/
""",
)
@click.argument("source", metavar="FILE", type=click.Path(exists=True, path_type=Path))
@click.option("-o", "--output", metavar="REPORT", help="Output file; default: beside the file.")
@click.option("-f", "--force-overwrite", is_flag=True, help="Replace a report that exists.")
@help_option("--help-formats", "importers.formats", "formats")
def command(source: Path, output: str | None, force_overwrite: bool) -> None:
    """Make a report from another tool's recording.

    FILE is a file, or a folder of files, e.g. an export of Nsight Systems.
    """
    give_back_early()
    from warplens.importers.importing import import_file

    # A report that is to be replaced stays until there is something to replace it with.
    folder = Path(output or source).absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".import-", dir=folder) as made, progress_bar() as progress:
        parts = import_file(source, Path(made) / "report", progress) if force_overwrite else None
        with destination(output or str(source).replace("%", "%%"), force=force_overwrite, job=None) as (
            report,
            _,
        ):
            if parts is None:
                parts = import_file(source, report, progress)
            else:
                rename(Path(made) / "report", report)
    rows = {table: sum(part.rows(table) for part in parts) for table in _TOLD}
    held = ", ".join(counted(rows[table], noun) for table, noun in _TOLD.items() if rows[table])
    click.echo(f"{short_path(report)}: {held or 'nothing that a report has a place for'}")
