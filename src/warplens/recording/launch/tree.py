"""Follows every process of a program's tree, by the stub in their environment and the register."""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from warplens.recording.agent.library import Agent
from warplens.recording.agent.preload import ENTRY, PRELOAD, STUB, StubPath, added
from warplens.recording.launch.register import Register, descendants
from warplens.recording.run_facts import RunFacts

# WarplensForeign in native/include/warplens/registry.h
_FOREIGN = {
    1: "it is built for another machine, or of 32 bits",
    2: "it uses another C library than glibc",
    3: "it is linked statically",
    4: "it runs with other rights than its caller",
    5: "it is built with a sanitizer, which insists on being loaded first",
    6: "it is not a program that can be examined",
    7: "our library cannot be opened from there",
}
_NO_ELF = 6


class Tree:
    """The processes that come of one launched program.

    Raises nothing: what cannot be followed becomes a note in `facts`.
    """

    def __init__(self, spool: Path, agent: Agent, facts: RunFacts, stub: str = STUB) -> None:
        self._agent = agent
        self._library = stub
        self._facts = facts
        self._stub: StubPath | None = None
        self._reason = 0
        self.register = Register(spool)
        if self.register.failed is not None:
            facts.note(
                "warning",
                "no-register",
                f"The register of processes could not be made: {self.register.failed.strerror}. "
                "Only processes that call NVTX are listed.",
            )

    def announce(self, environment: MutableMapping[str, str], program: str) -> None:
        """Let the stub into `program` and all that it starts, where that does no harm."""
        if self.register.failed is not None or not os.path.exists(self._library):
            return
        self._reason = reason = self._agent.examine(program)
        if reason and not (
            reason == _NO_ELF and os.access(program, os.R_OK)
        ):  # a text without "#!" runs in the shell
            self._facts.note(
                "warning",
                "not-followed",
                f"{program} cannot be followed, because {_FOREIGN.get(reason, _FOREIGN[_NO_ELF])}. "
                "Processes that call NVTX are recorded all the same.",
            )
            return
        self._stub = StubPath.of(self._library, environment)
        if self._stub.path is None:
            self._facts.note(
                "warning",
                "not-followed",
                f"The path {self._library} has a character that LD_PRELOAD cannot hold, and no "
                "temporary directory could take a link to "
                "it. Only processes that call NVTX are listed.",
            )
            return
        environment[PRELOAD] = added(environment.get(PRELOAD), self._stub.path)
        environment[ENTRY] = self._stub.path

    def started(self, pid: int, program: str, command: Sequence[str]) -> None:
        """Note the program itself, where it cannot do so."""
        if self._reason and self._stub is None:
            self.register.foreign(pid, self._reason, program, command=command)

    def end(self, still_running: Sequence[int]) -> None:
        """Note who still runs."""
        self.register.running(descendants(still_running))
        if still_running:
            self._stub = None  # they need it for their children

    def close(self) -> None:
        """Let go of everything."""
        self.register.close()
        if self._stub is not None:
            self._stub.remove()
