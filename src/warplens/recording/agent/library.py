"""Loads the agent library for the launcher: clocks, the control page, the cost of a range."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from warplens.errors import CaptureError
from warplens.recording.agent.announce import AGENT

ABI_VERSION = 7
CLOCK_KINDS = ("monotonic", "tsc", "cntvct")


@dataclass(frozen=True, slots=True)
class ClockSample:
    """The clocks read together: `counter` in ticks of `kind`, `monotonic` and `realtime` in ns."""

    kind: str
    counter: int
    monotonic: int
    realtime: int


@dataclass(frozen=True, slots=True)
class CudaSettings:
    """CUDA recording settings: `CudaSettings` in `format.h`.

    `flags` and `backtrace` hold its bits, `backtrace_ns` is by category.
    """

    flags: int = 0
    flush_ms: int = 200
    backtrace: int = 0
    backtrace_ns: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class CpuSettings:
    """CPU recording settings: `CpuSettings` in `format.h`; `flags` holds its bits."""

    flags: int = 0
    backtrace: int = 0
    python_hz: int = 1000
    native_hz: int = 0
    stack_depth: int = 24
    gil_threshold_ns: int = 0
    os_threshold_ns: int = 0
    os_backtrace_ns: int = 0


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    """The settings in the control file for the agents.

    The names are those of `WarplensCapture` in `warplens.h`, times in ns.
    """

    open: bool = True
    trigger: int = 0
    window_limit: int = 0
    trigger_closes: bool = True
    any_domain: bool = False
    filter: int = 0
    keep_ns: int = 0
    max_bytes: int = 0
    message: str = ""
    domain: str = ""
    domains: tuple[str, ...] = ()
    cuda: CudaSettings = CudaSettings()
    cpu: CpuSettings = CpuSettings()


class _Cuda(ctypes.Structure):
    """WarplensCuda."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("flags", "flush_ms", "backtrace")),
        ("backtrace_ns", ctypes.c_uint32 * 4),
        ("reserved", ctypes.c_uint32),
    ]


class _Cpu(ctypes.Structure):
    """WarplensCpu."""

    _fields_ = [
        *(
            (name, ctypes.c_uint32)
            for name in ("flags", "backtrace", "python_hz", "native_hz", "stack_depth", "gil_threshold_ns")
        ),
        *((name, ctypes.c_uint64) for name in ("os_threshold_ns", "os_backtrace_ns")),
    ]


class _Capture(ctypes.Structure):
    """WarplensCapture."""

    _fields_ = [
        ("size", ctypes.c_uint64),
        *(
            (name, ctypes.c_uint32)
            for name in (
                "open",
                "trigger",
                "window_limit",
                "trigger_closes",
                "any_domain",
                "filter",
                "filter_count",
            )
        ),
        ("reserved", ctypes.c_uint32),
        ("keep_ns", ctypes.c_uint64),
        ("max_bytes", ctypes.c_uint64),
        ("texts", ctypes.c_char_p),
        ("texts_size", ctypes.c_uint64),
        ("cuda", _Cuda),
        ("cpu", _Cpu),
    ]


class Agent:
    """The loaded library.

    Loading it records nothing: recording starts only where NVTX initialises it.
    """

    def __init__(self, path: Path, library: ctypes.CDLL) -> None:
        self.path = path
        self._clock_sample = library.warplens_clock_sample
        self._clock_sample.argtypes = (ctypes.POINTER(ctypes.c_uint64),)
        self._clock_sample.restype = ctypes.c_uint32
        self._control_create = library.warplens_control_create
        self._control_create.argtypes = (
            ctypes.c_char_p,
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.POINTER(_Capture),
        )
        self._control_create.restype = ctypes.c_int
        self._window_open = library.warplens_window_open
        self._window_open.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64)
        self._window_open.restype = ctypes.c_int64
        self._window_close = library.warplens_window_close
        self._window_close.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
        self._window_close.restype = ctypes.c_int64
        self._window_keep = library.warplens_window_keep
        self._window_keep.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint32)
        self._window_keep.restype = ctypes.c_int64
        self._window_close_abandoned = library.warplens_window_close_abandoned
        self._window_close_abandoned.argtypes = (ctypes.c_void_p,)
        self._window_close_abandoned.restype = ctypes.c_int64
        self._charge = library.warplens_control_charge
        self._charge.argtypes = (ctypes.c_void_p, ctypes.c_int64)
        self._charge.restype = ctypes.c_int
        self._pair_cost = library.warplens_pair_cost
        self._pair_cost.argtypes = (ctypes.c_char_p, ctypes.c_uint32)
        self._pair_cost.restype = ctypes.c_double
        self._python_known = library.warplens_python_known
        self._python_known.restype = ctypes.c_int
        self._start = library.warplens_start
        self._start.argtypes = (ctypes.c_char_p,)
        self._start.restype = ctypes.c_int
        self._observe = library.warplens_observe
        self._observe.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
        self._observe.restype = ctypes.c_int
        self._stop = library.warplens_stop
        self._stop.restype = ctypes.c_int
        self._attached = library.warplens_attached
        self._attached.argtypes = (ctypes.c_char_p, ctypes.c_uint64)
        self._attached.restype = ctypes.c_uint64
        self._examine = library.warplens_examine_program
        if self._examine is not None:
            self._examine.argtypes = (ctypes.c_char_p,)
            self._examine.restype = ctypes.c_int

    def clock_sample(self) -> ClockSample:
        """Read the clocks together."""
        out = (ctypes.c_uint64 * 3)()
        kind = self._clock_sample(out)
        name = CLOCK_KINDS[kind] if kind < len(CLOCK_KINDS) else f"clock {kind}"
        return ClockSample(name, out[0], out[1], realtime=out[2])

    def knows_python(self) -> bool:
        """Say whether Python stacks and the GIL of this interpreter can be recorded."""
        return bool(self._python_known() == 1)

    def create_control(self, path: Path, early: ClockSample, capture: CaptureSettings | None = None) -> None:
        """Create the control file at `path`, with clock constants measured from `early` to now.

        OSError if it cannot be.

        E2BIG: the texts of `capture` take more than a page together.
        """
        sample = (ctypes.c_uint64 * 3)(early.counter, early.monotonic, early.realtime)
        settings = CaptureSettings() if capture is None else capture
        texts = b"".join(
            os.fsencode(text) + b"\0" for text in (settings.message, settings.domain, *settings.domains)
        )
        wanted = _Capture(
            size=ctypes.sizeof(_Capture),
            open=settings.open,
            trigger=settings.trigger,
            window_limit=settings.window_limit,
            trigger_closes=settings.trigger_closes,
            any_domain=settings.any_domain,
            filter=settings.filter,
            filter_count=len(settings.domains),
            keep_ns=settings.keep_ns,
            max_bytes=settings.max_bytes,
            texts=texts,
            texts_size=len(texts),
            cuda=_Cuda(
                flags=settings.cuda.flags,
                flush_ms=settings.cuda.flush_ms,
                backtrace=settings.cuda.backtrace,
                backtrace_ns=settings.cuda.backtrace_ns,
            ),
            cpu=_Cpu(*(getattr(settings.cpu, field[0]) for field in _Cpu._fields_)),
        )
        error = self._control_create(os.fsencode(path), sample, ctypes.byref(wanted))
        if error:
            raise OSError(error, os.strerror(error), str(path))

    def open_window(self, control: int, cause: int, open_ns: int = 0) -> int:
        """Open a window in the control file mapped at `control`; its number, 0 when one is open.

        OSError: no room for another.
        """
        number = int(self._window_open(control, cause, open_ns))
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        return number

    def close_window(self, control: int, cause: int) -> int:
        """Close the window that is open; its number, 0 when none is."""
        return int(self._window_close(control, cause))

    def close_abandoned_window(self, control: int) -> int:
        """Close the window that is open if the process that opened it is gone.

        Its number, 0 when it is not.
        """
        return int(self._window_close_abandoned(control))

    def keep_window(self, control: int, cause: int, span_ns: int, *, go_on: bool) -> int:
        """Close the window that is open, cut to its last `span_ns`; its number, 0 when none is.

        OSError: no room for another.

        With `go_on` the next one begins at once.
        """
        number = int(self._window_keep(control, cause, span_ns, go_on))
        if number < 0:
            raise OSError(-number, os.strerror(-number))
        return number

    def charge(self, control: int, count: int) -> bool:
        """Count bytes of a file against the limit of the run; False if they do not fit.

        Below 0: they are free again.
        """
        return bool(self._charge(control, count) == 0)

    def pair_cost(self, directory: Path, pairs: int = 20_000) -> float | None:
        """Return what one push/pop costs here, in ns.

        None if it cannot be measured in `directory`.
        """
        cost = float(self._pair_cost(os.fsencode(directory), pairs))
        return cost if cost > 0 else None

    def start(self, spool: Path) -> None:
        """Record this process into `spool`, which holds a control page.

        OSError, with EBUSY where it is recorded already.
        """
        error = self._start(os.fsencode(spool))
        if error:
            raise OSError(error, os.strerror(error), str(spool))

    def observe(self, spool: Path, pid: int, stop: int) -> int:
        """Record the process `pid` into `spool` from outside, until it ends or `stop` can be read.

        Return 0 or an errno.

        For a process that does nothing else, and ends with `os._exit`.
        """
        return int(self._observe(os.fsencode(spool), pid, stop))

    def stop(self) -> bool:
        """End what `start` began; return whether there was anything to end."""
        return bool(self._stop() == 0)

    def examine(self, program: str) -> int:
        """Return why `program` must not get our stub, as a WarplensForeign of `registry.h`.

        0 when nothing speaks against it.
        """
        return int(self._examine(os.fsencode(program)))

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
            f"The agent library is missing: {path}.\n"
            "Recording needs it. Install warplens from a wheel for this platform (Linux, x86-64 or aarch64), "
            "or in a checkout build it with `make native`."
        )
    try:
        library = ctypes.CDLL(str(path))
        version = int(library.warplens_abi_version())
    except (OSError, AttributeError) as error:
        raise CaptureError(
            f"The agent library cannot be loaded: {error}.\nIt was built for another system; install warplens again."
        ) from error
    if version != ABI_VERSION:
        raise CaptureError(
            f"The agent library {path} has version {version}, this warplens needs "
            f"{ABI_VERSION}.\nInstall warplens again."
        )
    return Agent(path, library)
