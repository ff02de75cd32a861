"""How NVTX is told of the agent: variables of the environment. Imports next to nothing, for `prepare`."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # not typing's: importing that costs more than all of this
if TYPE_CHECKING:
    from collections.abc import MutableMapping

INJECTION = "NVTX_INJECTION64_PATH"
CHAIN = "WARPLINE_NVTX_CHAIN"
SPOOL = "WARPLINE_SPOOL"
AGENT = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "_lib", "libwarpline_agent.so")


def announce(environment: MutableMapping[str, str], agent: str) -> None:
    """Make NVTX load `agent`. It loads one tool: another that is set goes to WARPLINE_NVTX_CHAIN, and the agent passes all on to it."""
    earlier = environment.get(INJECTION)
    if earlier and earlier != agent:
        environment[CHAIN] = earlier
    elif not earlier:
        environment.pop(CHAIN, None)
    environment[INJECTION] = agent


class Announcement:
    """What a recording sets in this process's environment, for its children and for libraries that come; undone by `withdraw`."""

    def __init__(self, agent: str, spool: str) -> None:
        self._before = {name: os.environ.get(name) for name in (INJECTION, CHAIN, SPOOL)}
        announce(os.environ, agent)
        os.environ[SPOOL] = spool
        self._set = {name: os.environ.get(name) for name in self._before}

    def withdraw(self, keep: tuple[str, ...] = ()) -> None:
        """Put back what was there, except for the names in `keep` and where the program set something else meanwhile."""
        for name, before in self._before.items():
            if name in keep or os.environ.get(name) != self._set[name]:
                continue
            if before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before
