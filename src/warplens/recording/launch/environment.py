"""Builds the environment of the traced program: a few variables.

Nothing of warplens has to be importable there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from warplens.recording.agent.announce import SPOOL, announce

_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")


def launch_environment(initial: Path = Path("/proc/self/environ")) -> dict[str, str]:
    """Return this process's environment as its caller made it.

    Python itself sets LC_CTYPE if the locale is C (PEP 538).

    `initial` is what the kernel knows of the environment that the process was started with.
    """
    environ = dict(os.environ)
    if environ.get("LC_CTYPE") not in _COERCED:
        return environ
    try:
        variables = initial.read_bytes().split(b"\0")
    except OSError:
        return environ
    given = [
        value
        for name, equals, value in (variable.partition(b"=") for variable in variables)
        if equals and name == b"LC_CTYPE"
    ]
    if given:
        environ["LC_CTYPE"] = os.fsdecode(given[0])
    else:
        del environ["LC_CTYPE"]
    return environ


def child_environment(
    base: Mapping[str, str],
    *,
    agent: Path,
    spool: Path,
    sources: Collection[str] = ("nvtx", "cuda"),
    extra: Iterable[tuple[str, str]] = (),
) -> dict[str, str]:
    """Return `base` plus `extra` and what the agent needs to record `sources`."""
    environ = dict(base)
    environ.update(extra)
    environ[SPOOL] = str(spool)
    announce(environ, str(agent), sources)
    return environ
