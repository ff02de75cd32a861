"""Sets LD_PRELOAD, so that the dynamic loader puts our stub into every program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from warplens.disk.files import remove_tree
from warplens.recording.agent.announce import AGENT

PRELOAD = "LD_PRELOAD"
ENTRY = "WARPLENS_PRELOAD"  # what stands for the stub there, for the stub itself
STUB = os.path.join(os.path.dirname(AGENT), "libwarplens_preload.so")
CPU_STUB = os.path.join(
    os.path.dirname(AGENT), "libwarplens_preload_cpu.so"
)  # the same, and what the CPU side needs
PYTHON = "WARPLENS_PYTHON"  # has the small stub load the agent where a program holds CPython
_SEPARATORS = " :"
_EXPANDED = "$"  # $ORIGIN, $LIB and $PLATFORM mean something to the loader


def added(value: str | None, stub: str) -> str:
    """Return the value of LD_PRELOAD with `stub` behind what the user has there.

    Once, also for a launcher in a launcher.
    """
    if not value:
        return stub
    return value if stub in value.replace(" ", ":").split(":") else f"{value}:{stub}"


def listable(path: str) -> bool:
    """Say whether LD_PRELOAD can hold the path: it knows no quotes."""
    return not any(character in path for character in _SEPARATORS + _EXPANDED + "\n")


class StubPath:
    """The path of the stub for LD_PRELOAD.

    Where the real one cannot stand there, a link in a private directory.
    """

    def __init__(self, path: str | None, folder: str | None = None) -> None:
        """`folder`: the private directory."""
        self.path, self._folder = path, folder

    @classmethod
    def of(cls, stub: str = STUB, environment: Mapping[str, str] | None = None) -> StubPath:
        """Return the path, and make the link if it needs one; without a place for it the path is None."""
        if listable(stub):
            return cls(stub)
        import tempfile  # slow to load, and hardly ever needed

        for parent in _places(os.environ if environment is None else environment):
            try:
                folder = tempfile.mkdtemp(prefix="warplens-", dir=parent)
            except OSError:
                continue
            link = cls(os.path.join(folder, Path(stub).name), folder)
            try:
                os.symlink(stub, str(link.path))
                # also for children that drop their rights: else the loader complains in them
                os.chmod(folder, 0o711)
                return link
            except OSError:
                link.remove()
        return cls(None)

    def remove(self) -> None:
        """Remove the link.

        Not while programs run that have it in their environment: the loader would complain in their
        children.
        """
        if self._folder is not None:
            remove_tree(Path(self._folder))
        self.path = self._folder = None


def _places(environment: Mapping[str, str]) -> Iterator[str]:
    import tempfile

    for place in (environment.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
        if place and os.path.isabs(place) and listable(place):
            yield place
