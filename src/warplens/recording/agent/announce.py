"""Environment variables that make NVTX and the CUDA driver load the agent.

Imports next to nothing, for `prepare`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # not typing's: importing that costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Collection, MutableMapping

INJECTION = "NVTX_INJECTION64_PATH"
CHAIN = "WARPLENS_NVTX_CHAIN"
CUDA_INJECTION = "CUDA_INJECTION64_PATH"
CUDA_CHAIN = "WARPLENS_CUDA_CHAIN"
ITT = "INTEL_LIBITTNOTIFY64"  # Intel's interface: oneDNN, PyTorch's emit_itt, OpenVINO
ONEDNN = "ONEDNN_ITT_TASK_LEVEL"
CUPTI = "WARPLENS_CUPTI"  # the libcupti that the user wants, and no other
CUPTI_SEARCH = "WARPLENS_CUPTI_SEARCH"  # libraries to try, separated by colons, where the process has loaded none: best first
SPOOL = "WARPLENS_SPOOL"
# Loader of a tool -> the variable that names it, and the one that keeps the tool whose place the agent takes.
WAYS = {"nvtx": (INJECTION, CHAIN), "cuda": (CUDA_INJECTION, CUDA_CHAIN)}
TOOLS = (INJECTION, CHAIN, CUDA_INJECTION, CUDA_CHAIN, ITT, ONEDNN)
AGENT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))),
    "_lib",
    "libwarplens_agent.so",
)


def announce(
    environment: MutableMapping[str, str], agent: str, sources: Collection[str] = ("nvtx", "cuda")
) -> None:
    """Make NVTX and the CUDA driver load `agent`, for those of `sources` that need it.

    Each loads one tool: another that is set goes to WARPLENS_NVTX_CHAIN or WARPLENS_CUDA_CHAIN, and the agent looks after it.
    Another collector of ITT keeps its place. Of oneDNN the thread that calls a primitive is recorded (level 1), not its workers.
    """
    if "nvtx" in sources and environment.setdefault(ITT, agent) == agent:
        environment.setdefault(ONEDNN, "1")
    for source, (injection, chain) in WAYS.items():
        if source not in sources:
            continue
        earlier = environment.get(injection)
        if earlier and earlier != agent:
            environment[chain] = earlier
        elif not earlier:
            environment.pop(chain, None)
        environment[injection] = agent


class Announcement:
    """Set this process's environment for its children and for libraries that load later.

    `withdraw` undoes it.
    """

    def __init__(self, agent: str, spool: str) -> None:
        self._before = {name: os.environ.get(name) for name in (*TOOLS, SPOOL)}
        announce(os.environ, agent)
        os.environ[SPOOL] = spool
        self._set = {name: os.environ.get(name) for name in self._before}

    def withdraw(self, keep: tuple[str, ...] = ()) -> None:
        """Restore the environment, except for the names in `keep` and variables that the program changed."""
        for name, before in self._before.items():
            if name in keep or os.environ.get(name) != self._set[name]:
                continue
            if before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before
