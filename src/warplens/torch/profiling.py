"""`warplens.torch.profile`: records steps of a training, called as `torch.profiler.profile` is."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from warplens.disk import files
from warplens.errors import WarplensError
from warplens.nvtx import pop_range, push_range
from warplens.recording.agent.prepare import prepare
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.options.cpu import CpuOptions
from warplens.recording.own_process import Recording, begin, end, recorded_by_launcher
from warplens.recording.windows.marking import Capture
from warplens.torch.modules import name_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any

_RECORDS = ("RECORD", "RECORD_AND_SAVE")  # names of torch.profiler.ProfilerAction
_LAST = "RECORD_AND_SAVE"


class profile:
    """Records what runs in a `with` block, or the steps that a schedule chooses; into a report.

        with warplens.torch.profile(
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=3),
            on_trace_ready=torch.profiler.tensorboard_trace_handler("log"),
        ) as prof:
            for batch in loader:
                train(batch)
                prof.step()

    Steps are ranges `ProfilerStep#N`. Each cycle of the schedule becomes a report; `report` is the path of the last one. In a run
    of `warplens profile` the steps are in the run's report, and with `-c cudaProfilerApi` each cycle is one of its windows.

    Args:
        activities: as in torch.profiler; without `ProfilerActivity.CUDA` no CUDA is recorded. Default: all.
        schedule: `torch.profiler.schedule(…)`, or any function from the number of a step to a `ProfilerAction`. Default: all steps.
        on_trace_ready: called with this object when a cycle has ended. The report may still be written then.
        record_shapes: operators with shapes and types of their inputs.
        with_stack: stacks of Python threads, 1,000 a second.
        with_modules: forward passes of modules as ranges; see `name_modules`.
        output: name of the report, as for `warplens.record`. Later cycles append their number.
        force: overwrite a report that exists.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        output: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        self.step_num = 0
        self.on_trace_ready = on_trace_ready
        self._activities = None if activities is None else tuple(activities)
        self._schedule = schedule
        self._options = CpuOptions(torch_inputs=record_shapes, python_sample=with_stack)
        self._with_modules = with_modules
        self._output = None if output is None else os.fsdecode(output)
        self._force = force
        self._action = "NONE"
        self._cycles = 0
        self._recording: Recording | None = None  # of the last cycle
        self._open: ExitStack | None = None  # of the cycle that records now
        self._in_step = False

    @property
    def report(self) -> Path | None:
        """The path of the last cycle's report; None before it, and in a run of `warplens profile`."""
        return None if self._recording is None else self._recording.path

    def start(self) -> None:
        """Start; CaptureError or ReportError if the first cycle begins here and cannot."""
        self._action = self._asked()
        if self._action in _RECORDS:
            self._begin()
        elif self._action == "WARMUP":
            prepare()
        self._enter_step()

    def step(self) -> None:
        """End a step and begin the next one, in the thread that started."""
        self._leave_step()
        self.step_num += 1
        before, self._action = self._action, self._asked()
        if self._open is not None and (before == _LAST or self._action not in _RECORDS):
            self._end(is_whole=before == _LAST)
        if self._open is None and self._action in _RECORDS:
            try:
                self._begin()
            except WarplensError as error:  # a training does not end for this
                _print(f"step {self.step_num} and those after it are not recorded: {error}")
                self._schedule = _never
                self._action = "NONE"
        self._enter_step()

    def stop(self) -> None:
        """Stop, and end the cycle that records."""
        self._leave_step()
        if self._open is not None:
            self._end(is_whole=True)
        self._action = "NONE"

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the last cycle in the format of PyTorch's profiler; waits until its report is written.

        Compressed if the path ends with `.gz`. In a run of `warplens profile`, which writes one report at its end, nothing is written.
        """
        out = os.fsdecode(path)
        if self._recording is None or self.report is None:
            _print(f"{out} is not written: `warplens export -t kineto` of the run's report writes it.")
            return
        self._recording.wait()
        plain = out.removesuffix(".gz")
        words = ["export", "-t", "kineto", "-f", "-q", "-o", plain, str(self.report)]
        done = subprocess.run([sys.executable, "-m", "warplens", *words], capture_output=True, text=True)
        if done.returncode:
            _print(f"{out} is not written: {done.stderr.strip() or done.returncode}")
        elif plain != out:
            with (
                open(plain, "rb") as file,
                files.output(Path(out)) as target,
                gzip.GzipFile(fileobj=target, mode="wb") as packed,
            ):
                packed.writelines(file)
            files.remove(Path(plain))

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _asked(self) -> str:
        if self._schedule is None:
            return "RECORD"
        action = self._schedule(self.step_num)
        return str(getattr(action, "name", action))

    def _begin(self) -> None:
        """Start a cycle: a recording, or a window of the launcher's."""
        self._cycles += 1
        with ExitStack() as stack:
            if self._with_modules:
                stack.enter_context(name_modules())
            if recorded_by_launcher():
                stack.enter_context(Capture())
            else:
                self._recording = Recording(self._name(), force=self._force, options=self._recorded())
                begin(self._recording)
                stack.callback(end, self._recording, wait=False)
            self._open = stack.pop_all()

    def _end(self, *, is_whole: bool) -> None:
        assert self._open is not None
        stack, self._open = self._open, None
        stack.close()
        if is_whole and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _name(self) -> str | None:
        if self._output is None or self._cycles == 1 or "%n" in self._output:
            return self._output
        return f"{self._output.removesuffix('.warplens')}-{self._cycles}"

    def _recorded(self) -> CaptureOptions:
        names = None if self._activities is None else {getattr(one, "name", one) for one in self._activities}
        cuda = ("cuda",) if names is None or "CUDA" in names else ()
        return CaptureOptions(trace=(*cuda, "nvtx", "torch"), cpu=self._options)

    def _enter_step(self) -> None:
        if self._open is not None:
            push_range(f"ProfilerStep#{self.step_num}")
            self._in_step = True

    def _leave_step(self) -> None:
        if self._in_step:
            self._in_step = False
            pop_range()


def _never(step: int) -> str:
    return "NONE"


def _print(text: str) -> None:
    """Print one line on stderr, if there is one."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"warplens: {text}\n")
    except (OSError, ValueError):
        pass
