"""Under --keep-last: removes the spools of processes that ended long ago.

So a server may start new processes for days.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

from warplens.disk.folder import Folder
from warplens.handover.pending import living_writer, writer_of
from warplens.recording.agent.control_file import END_NS, ControlPage
from warplens.recording.agent.library import Agent

_JSON = struct.Struct("<II")  # json_offset and json_size of FileHeader
_JSON_AT = 16
_SIZE_AT = 56  # file_size
_LARGEST_JSON = 1 << 20
_LEAST_S, _MOST_S = 0.5, 60.0
_MARGIN_NS = 1_000_000_000
_QUIET_NS = 60_000_000_000


class OutdatedSpools:
    """Looks at the spool files of one recording that keeps its last `keep_ns`.

    `look` is called from one thread and raises no OSError.

    What a closed window holds stays. `let_go` is called with the name of each file before it is removed; `removed` counts them, `newest_ns`
    is when the last of their processes was seen to have ended, ns of CLOCK_MONOTONIC.
    """

    def __init__(
        self, spool: Path, control: ControlPage, agent: Agent, keep_ns: int, let_go: Callable[[str], None]
    ) -> None:
        self.removed = 0
        self.newest_ns = 0
        self._spool = spool
        self._control = control
        self._agent = agent
        self._keep_ns = keep_ns + _MARGIN_NS
        self._let_go = let_go
        self._ended: dict[str, int] = {}  # when a file's process was first seen to have ended
        self._wanted: set[str] = set()
        self._every_ns = int(min(max(keep_ns / 1e10, _LEAST_S), _MOST_S) * 1e9)
        self._next_ns = self._quiet_until_ns = 0

    def look(self) -> bool:
        """Remove what is outdated by now, if it is time to look.

        Say whether there was anything, and nothing in the last minute.
        """
        now = time.monotonic_ns()
        if now < self._next_ns:
            return False
        self._next_ns = now + self._every_ns
        before = self.removed
        self._remove(now)
        if self.removed == before or now < self._quiet_until_ns:
            return False
        self._quiet_until_ns = now + _QUIET_NS
        return True

    def _remove(self, now: int) -> None:
        try:
            with Folder(self._spool) as folder:
                names = {name for name in folder.names() if name.endswith(".spool")}
                self._wanted &= names
                self._ended = {name: ended for name, ended in self._ended.items() if name in names}
                for name in names - self._wanted:
                    self._look_at(folder, name, now)
        except OSError:
            return  # deleted, or no more descriptors: the next look may do better

    def _look_at(self, folder: Folder, name: str, now: int) -> None:
        ended = self._ended.get(name)
        if ended is None:
            if writer_of(Path(name)) is not None and living_writer(Path(name)) is None:
                self._ended[name] = now
        elif now - ended > self._keep_ns:
            size, begun_ns, ended_ns = _facts(folder, name)
            if self._is_wanted(begun_ns, ended_ns):
                self._wanted.add(name)
                return
            self._let_go(name)
            folder.remove(name)
            self._agent.charge(self._control.address, -size)
            del self._ended[name]
            self.removed += 1
            self.newest_ns = max(self.newest_ns, ended)

    def _is_wanted(self, begun_ns: int, ended_ns: int) -> bool:
        """Whether a window that is closed holds a part of that time.

        A process that was killed did not say when it ended (0).
        """
        return any(
            window.close_ns and window.close_ns >= begun_ns and (not ended_ns or window.open_ns <= ended_ns)
            for window in self._control.windows()
        )


def _facts(folder: Folder, name: str) -> tuple[int, int, int]:
    """Return the charged size of a file, and begin and end of its process (ns, the spool's clock; 0: unknown)."""
    with folder.read(name) as file:
        head = file.read(END_NS + 8)
        if len(head) < END_NS + 8:
            return 0, 0, 0
        size, ended_ns = (struct.unpack_from("<Q", head, at)[0] for at in (_SIZE_AT, END_NS))
        offset, length = _JSON.unpack_from(head, _JSON_AT)
        text = os.pread(file.fileno(), min(length, _LARGEST_JSON), offset)
    try:
        begun = json.loads(text)["process"]["start_ns"]
    except (ValueError, KeyError, TypeError):
        begun = 0
    return min(size, 1 << 62), begun if isinstance(begun, int) else 0, ended_ns
