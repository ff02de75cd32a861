"""The command line without click: only recording.

For an installation without dependencies (`pip install --no-deps`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from warplens import catalog
from warplens._version import __version__
from warplens.cli import bare_sessions
from warplens.cli.checks import packages
from warplens.cli.options import capture_arguments
from warplens.cli.options.arguments import split
from warplens.cli.printing.messages import INTERRUPTED, complain
from warplens.cli.recording import OPTIONS, Kind, Request, record
from warplens.errors import UsageError, WarplensError

_HELP = """\
Usage: warplens profile|launch [OPTIONS] [--] PROGRAM [ARGS]…
       warplens start|stop|status|sessions|shutdown [--session NAME]

Only recording works here, because warplens is installed without its dependencies. The report is finished by any command
that opens it where they are installed.

  -o NAME  -f  -t LIST  -e A=B[,C=D]  --wait primary|all  --spool-dir DIR  --keep-raw  -q
"""
_CAPTURE = "".join(
    f"  {'  '.join(argument.names)}  {argument.value}".rstrip() + "\n"
    for argument in capture_arguments.ARGUMENTS
)


def run(arguments: Sequence[str] | None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except WarplensError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(_HELP + _CAPTURE, end="")
        return 0
    if words[0] in ("-v", "-V", "--version"):
        print(f"warplens {__version__}")
        return 0
    kind: Kind = "launch" if words[0] == "launch" else "profile"
    if words[0] in bare_sessions.COMMANDS:
        return bare_sessions.run(words[0], words[1:])
    if words[0] == kind:
        del words[0]
    elif any(unit.id.replace("_", "-") == words[0] for unit in catalog.units("cli.commands")):
        raise UsageError(
            f"`warplens {words[0]}` needs packages that are not installed here.\n{packages.how_to_install()}"
        )
    arguments = split(words, OPTIONS, kind)
    given = dict(option.split("=", 1) for option in arguments.options)
    if given.get("--help") == "true":
        print(_HELP + _CAPTURE, end="")
        return 0
    wait = given.get("--wait", "all")
    if wait not in ("primary", "all"):
        raise UsageError(f"--wait {wait}: write primary or all.")
    request = Request(
        arguments.command,
        output=given.get("--output"),
        force=given.get("--force-overwrite") == "true",
        trace=given.get("--trace"),
        variables=[
            option.split("=", 1)[1] for option in arguments.options if option.startswith("--env-var=")
        ],
        wait="primary" if wait == "primary" else "all",
        keep_raw=given.get("--keep-raw") == "true",
        spool_dir=Path(given["--spool-dir"]) if "--spool-dir" in given else None,
        quiet=given.get("--quiet") == "true",
        later=arguments.later,
        capture={name: value for name, value in given.items() if name in capture_arguments.NAMES},
        kind=kind,
    )
    return record(request).exit_status
