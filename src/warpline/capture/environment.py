"""The environment of the traced program: a few variables, and nothing of warpline has to be importable there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

INJECTION = "NVTX_INJECTION64_PATH"
CHAIN = "WARPLINE_NVTX_CHAIN"
SPOOL = "WARPLINE_SPOOL"


def child_environment(base: Mapping[str, str], *, agent: Path | None, spool: Path, extra: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """Return `base` plus `extra` and what the agent needs; `agent` None records nothing from NVTX.

    An NVTX tool that is already set is kept: the agent passes everything on to it.
    """
    environ = dict(base)
    environ.update(extra)
    environ[SPOOL] = str(spool)
    if agent is None:
        return environ
    earlier = environ.get(INJECTION)
    if earlier and earlier != str(agent):
        environ[CHAIN] = earlier
    elif not earlier:
        environ.pop(CHAIN, None)
    environ[INJECTION] = str(agent)
    return environ
