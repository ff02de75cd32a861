"""cudaProfilerStart and cudaProfilerStop from Python.

For the tools that listen to them and for the run that records this process.
"""

from __future__ import annotations

import os

from warplens.recording.agent.announce import AGENT, SPOOL, TOOLS
from warplens.recording.agent.prepare import loaded_libraries

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from types import TracebackType

_AGENT_NAME = "libwarplens_agent"
_libraries: dict[str, ctypes.CDLL] = {}


class CudaProfiler:
    """Marks what to capture of this process, like `torch.cuda.profiler`.

    In a `with` block, or from `start` to `stop`.

        with warplens.CudaProfiler():
            train_step()

    In a run of `warplens profile -c cudaProfilerApi` that opens and closes a window, with and without CUDA. Where CUDA is loaded its
    own functions are called, too, which nsys and ncu listen to. Else nothing happens. They do not nest: the first stop ends it.
    """

    @staticmethod
    def start() -> None:
        """Begin; never raises."""
        tell_run("start")
        _tell_cuda("Start")

    @staticmethod
    def stop() -> None:
        """End; never raises."""
        _tell_cuda("Stop")
        tell_run("stop")

    def __enter__(self) -> CudaProfiler:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def tell_run(what: str) -> bool:
    """Tell the run that records this process of a `start` or `stop`.

    Return whether that opened or closed a window.
    """
    spool = os.environ.get(SPOOL)
    if not spool or not os.path.exists(os.path.join(spool, "control")):
        return False  # nobody does, or does no longer
    try:
        agent = _loaded(_AGENT_NAME) or _opened(_announced(), load=True)
        return agent is not None and bool(getattr(agent, f"warplens_profiler_{what}")())
    except (OSError, AttributeError, ImportError):  # no agent; of another version; Python without ctypes
        return False


def _tell_cuda(what: str) -> None:
    """Call CUDA's own function if CUDA is in this process.

    It never creates a context: a program that forks later could use it no more.
    """
    try:
        driver = _loaded("libcuda.so")
        if driver is None:
            return
        runtime = _loaded("libcudart") if _has_context(driver) else None
        if runtime is not None:
            getattr(runtime, f"cudaProfiler{what}")()
        else:
            getattr(driver, f"cuProfiler{what}")()
    except (OSError, AttributeError, ImportError):
        return


def _has_context(driver: ctypes.CDLL) -> bool:
    import ctypes

    context = ctypes.c_void_p()
    return driver.cuCtxGetCurrent(ctypes.byref(context)) == 0 and context.value is not None


def _loaded(name: str) -> ctypes.CDLL | None:
    """Return the library of this process whose file name begins with `name`; it may come later."""
    if name not in _libraries:
        path = next((path for path in loaded_libraries() if os.path.basename(path).startswith(name)), None)
        library = None if path is None else _opened(path, load=False)
        if library is None:
            return None
        _libraries[name] = library
    return _libraries[name]


def _opened(path: str, *, load: bool) -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(path, mode=os.RTLD_NOW | (0 if load else os.RTLD_NOLOAD))


def _announced() -> str:
    """Return the path of the agent that the run wants in this process."""
    named = (os.environ.get(name, "") for name in TOOLS)
    return next((path for path in named if os.path.basename(path).startswith(_AGENT_NAME)), AGENT)
