"""The commands for running sessions without click.

For an installation without dependencies (`pip install --no-deps`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warplens.cli.options.capture_arguments import signal_number
from warplens.cli.printing.session_words import closed, phase, report_path
from warplens.errors import UsageError

COMMANDS = ("start", "stop", "status", "sessions", "shutdown")
_VALUES = {"start": (), "stop": ("--keep",), "status": (), "sessions": (), "shutdown": ("--kill",)}


def run(command: str, words: Sequence[str]) -> int:
    """Run one of `COMMANDS` and return its exit code.

    WarplensError as the full commands raise them.
    """
    from warplens.recording.session.client import ask, described
    from warplens.recording.session.directory import entries

    if command == "sessions" and words[:1] == ["list"]:
        words = words[1:]
    given = _options(command, words)
    if command == "sessions":
        with entries() as found:
            for entry in found:
                print(described(entry) + ("" if entry.alive else " (killed)"))
        return 0
    request: dict[str, Any] = {"do": command}
    if command == "stop":
        # a report cannot be written here
        request |= {"keep": _number(given["--keep"]) if "--keep" in given else None, "wait": False}
    if command == "shutdown":
        request["kill"] = signal_number(given["--kill"]) if "--kill" in given else None
    answer = ask(given.get("--session"), request, timeout=None if command == "shutdown" else 10.0)
    said = closed(answer) if command == "stop" else "it is over" if command == "shutdown" else phase(answer)
    print(f"{answer['session']}: {said}; {report_path(answer)}")
    return 0


def _options(command: str, words: Sequence[str]) -> dict[str, str]:
    known = ("--session", *_VALUES[command])
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in known or not (equals or rest):
            raise UsageError(
                f"warplens {command} knows {', '.join(f'{option} VALUE' for option in known)} here."
            )
        given[name] = value if equals else rest.pop(0)
    return given


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--keep {text}: write a number of seconds, e.g. --keep 10.") from None
