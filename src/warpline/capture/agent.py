"""The agent library, as the launcher uses it: clocks, the control page, and what recording a range costs."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from warpline.capture.announce import AGENT
from warpline.errors import CaptureError

ABI_VERSION = 2
CLOCK_KINDS = ("monotonic", "tsc", "cntvct")


@dataclass(frozen=True, slots=True)
class ClockSample:
    """The clocks read together: `counter` in ticks of `kind`, `monotonic` and `realtime` in ns."""

    kind: str
    counter: int
    monotonic: int
    realtime: int


class Agent:
    """The loaded library. Loading it records nothing: recording starts only where NVTX initialises it."""

    def __init__(self, path: Path, library: ctypes.CDLL) -> None:
        self.path = path
        self._clock_sample = library.warpline_clock_sample
        self._clock_sample.argtypes = (ctypes.POINTER(ctypes.c_uint64),)
        self._clock_sample.restype = ctypes.c_uint32
        self._control_create = library.warpline_control_create
        self._control_create.argtypes = (ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64))
        self._control_create.restype = ctypes.c_int
        self._pair_cost = library.warpline_pair_cost
        self._pair_cost.argtypes = (ctypes.c_char_p, ctypes.c_uint32)
        self._pair_cost.restype = ctypes.c_double
        self._start = library.warpline_start
        self._start.argtypes = (ctypes.c_char_p,)
        self._start.restype = ctypes.c_int
        self._stop = library.warpline_stop
        self._stop.restype = ctypes.c_int
        self._attached = library.warpline_attached
        self._attached.argtypes = (ctypes.c_char_p, ctypes.c_uint64)
        self._attached.restype = ctypes.c_uint64

    def clock_sample(self) -> ClockSample:
        """Read the clocks together."""
        out = (ctypes.c_uint64 * 3)()
        kind = self._clock_sample(out)
        name = CLOCK_KINDS[kind] if kind < len(CLOCK_KINDS) else f"clock {kind}"
        return ClockSample(name, out[0], out[1], out[2])

    def create_control(self, path: Path, early: ClockSample) -> None:
        """Create the control page at `path`, with clock constants measured from `early` to now; OSError if it cannot be."""
        sample = (ctypes.c_uint64 * 3)(early.counter, early.monotonic, early.realtime)
        error = self._control_create(os.fsencode(path), sample)
        if error:
            raise OSError(error, os.strerror(error), str(path))

    def pair_cost(self, directory: Path, pairs: int = 20_000) -> float | None:
        """Return what one push/pop costs here, in ns; None where it cannot be measured in `directory`."""
        cost = float(self._pair_cost(os.fsencode(directory), pairs))
        return cost if cost > 0 else None

    def start(self, spool: Path) -> None:
        """Record this process into `spool`, which holds a control page; OSError, with EBUSY where it is recorded already."""
        error = self._start(os.fsencode(spool))
        if error:
            raise OSError(error, os.strerror(error), str(spool))

    def stop(self) -> bool:
        """End what `start` began; return whether there was anything to end."""
        return bool(self._stop() == 0)

    def attached(self) -> tuple[str, ...]:
        """Return the paths of the libraries whose NVTX calls the agent hears, as the loader knows them."""
        size = self._attached(None, 0) + 1024  # another may come between the two calls
        text = ctypes.create_string_buffer(size)
        self._attached(text, size)
        return tuple(os.fsdecode(line) for line in text.value.splitlines())


def load_agent(path: Path | None = None) -> Agent:
    """Load the agent library; CaptureError says what is missing and what to do."""
    path = path or Path(AGENT)
    if not path.is_file():
        raise CaptureError(
            f"The agent library is missing: there is no {path}.\n"
            "Recording needs it. Install warpline from a wheel for this platform (Linux, x86-64 or aarch64), "
            "or in a checkout build it with `make native`."
        )
    try:
        library = ctypes.CDLL(str(path))
        version = int(library.warpline_abi_version())
    except (OSError, AttributeError) as error:
        raise CaptureError(
            f"The agent library cannot be loaded: {error}.\nIt was built for another system; install warpline again."
        ) from error
    if version != ABI_VERSION:
        raise CaptureError(
            f"The agent library {path} speaks version {version}, this warpline speaks {ABI_VERSION}.\nInstall warpline again."
        )
    return Agent(path, library)
