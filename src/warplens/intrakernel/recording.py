"""Registers buffers and launches with the agent, so that their events are in the report.

Only in a process that is recorded.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable

ANY_STREAM = (1 << 64) - 1  # which stream it is, is not known
_SPOOL = "WARPLENS_SPOOL"  # set by the recorder of this process and its children
_TOOLS = ("NVTX_INJECTION64_PATH", "WARPLENS_NVTX_CHAIN", "CUDA_INJECTION64_PATH", "WARPLENS_CUDA_CHAIN")
_NAME = "libwarplens_agent"
_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "_lib", f"{_NAME}.so")

_agent: ctypes.CDLL | None = None
_failed = False
_numbers: dict[
    int, tuple[int, int, bool, str]
] = {}  # our numbers of buffers -> address, bytes, on a device, name
_theirs: dict[int, int] = {}  # … -> the agent's numbers
_told: dict[int, int] = {}  # … -> how many tags the agent knows
_last = 0


def register(pointer: int, nbytes: int, *, on_device: bool, name: str = "") -> int:
    """Take note of a buffer; return its number.

    The agent hears of it with its first launch that is recorded.
    """
    global _last
    _last += 1
    _numbers[_last] = (pointer, nbytes, on_device, name)
    return _last


def store(number: int, tags: Iterable[str] = ()) -> None:
    """Let the agent store the last launch's records before the next launch overwrites them.

    Waits for its kernel. `tags` by their numbers.
    """
    theirs = _theirs.get(number, 0)
    if theirs and _agent is not None and os.environ.get(_SPOOL):
        _tell_tags(number, theirs, tags)
        _agent.warplens_intrakernel_store(theirs)


def launched(number: int, generation: int, name: str = "", stream: int = ANY_STREAM) -> bool:
    """Tell the agent that the next kernel of this thread writes into the buffer.

    Return whether that is recorded. Never raises.

    The buffer must hold nothing that is still wanted: call `store` before its head is changed.
    """
    if not os.environ.get(_SPOOL):
        return False
    agent = _agent or _load()
    known = _numbers.get(number)
    if agent is None or known is None:
        return False
    theirs = _theirs.get(number)
    if theirs is None:
        pointer, nbytes, on_device, text = known
        theirs = _theirs[number] = agent.warplens_intrakernel_register(
            pointer, nbytes, int(on_device), None, _bytes(text)
        )
    return bool(agent.warplens_intrakernel_launch(theirs, generation, stream, _bytes(name)))


def unregister(number: int, tags: Iterable[str] = ()) -> None:
    """Tell the agent that the buffer is about to go: it stores what is in it. Never raises."""
    theirs = _theirs.get(number, 0)
    if theirs and _agent is not None:
        _tell_tags(number, theirs, tags)
        _agent.warplens_intrakernel_unregister(theirs)
    for known in (_numbers, _theirs, _told):
        known.pop(number, None)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="replace").replace(b"\0", b" ")


def _tell_tags(number: int, theirs: int, tags: Iterable[str]) -> None:
    """Tags only become more: kernels that are compiled later know more names."""
    names = list(tags)
    if _agent is not None and len(names) != _told.get(number, 0):
        _told[number] = len(names)
        text = b"".join(
            b"%d %s\n" % (tag, _bytes(name).replace(b"\n", b" ")) for tag, name in enumerate(names)
        )
        _agent.warplens_intrakernel_tags(theirs, text)


def _load() -> ctypes.CDLL | None:
    """Load the agent that the run wants in this process, once.

    Loading it records nothing by itself.
    """
    global _agent, _failed
    if _failed:
        return None
    spool = os.environ.get(_SPOOL, "")
    if not os.path.exists(os.path.join(spool, "control")):
        return None  # it is over
    named = (os.environ.get(name, "") for name in _TOOLS)
    path = next((path for path in named if os.path.basename(path).startswith(_NAME)), _OWN)
    try:
        import ctypes

        agent = ctypes.CDLL(path)
        u32, u64, text = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
        agent.warplens_intrakernel_register.argtypes = (u64, u64, u32, text, text)
        agent.warplens_intrakernel_register.restype = u32
        agent.warplens_intrakernel_tags.argtypes = (u32, text)
        agent.warplens_intrakernel_tags.restype = None
        agent.warplens_intrakernel_launch.argtypes = (u32, u32, u64, text)
        agent.warplens_intrakernel_launch.restype = ctypes.c_int
        for name in ("store", "unregister"):
            function = getattr(agent, f"warplens_intrakernel_{name}")
            function.argtypes, function.restype = (u32,), None
    except (OSError, AttributeError, ImportError):  # no agent; of another version; Python without ctypes
        _failed = True
        return None
    _agent = agent
    return agent
