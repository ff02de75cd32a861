"""The headings under which `--help` lists the options of a recording, the common ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from warplens.cli.options import cpu_arguments, cuda_arguments, gpu_arguments, presets

_HEADINGS = (
    ("Presets", [argument.long for argument in presets.ARGUMENTS]),
    ("Data to record", ["--trace", "--sample", "--gpu-metrics"]),
    ("The report", ["--output", "--force-overwrite", "--stats", "--quiet"]),
    ("The program", ["--env-var", "--wait", "--kill"]),
    (
        "Time to record",
        [
            "--delay",
            "--duration",
            "--start-later",
            "--session-new",
            "--capture-range",
            "--nvtx-capture",
            "--capture-range-end",
            "--keep-last",
        ],
    ),
    ("Disk", ["--max-size", "--spool-dir", "--convert", "--keep-raw"]),
    ("NVTX", ["--nvtx-domain-include", "--nvtx-domain-exclude"]),
    ("CPU details", [argument.long for argument in cpu_arguments.ARGUMENTS]),
    (
        "CUDA and GPU details",
        [argument.long for argument in (*cuda_arguments.ARGUMENTS, *gpu_arguments.ARGUMENTS)],
    ),
)
_LAST = "Others"


def under_headings(options: Sequence[click.Parameter]) -> Iterator[tuple[str, list[click.Parameter]]]:
    """Yield headings and their options: each option once, under the first heading that names it."""
    left = {
        option.opts[0] if len(option.opts) == 1 else max(option.opts, key=len): option for option in options
    }
    for heading, names in _HEADINGS:
        listed = [left.pop(name) for name in names if name in left]
        if listed:
            yield heading, listed
    if left:
        yield _LAST, list(left.values())
