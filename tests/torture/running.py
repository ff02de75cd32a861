"""One program under `warplens profile`, in a folder of its own, while things happen to it."""

from __future__ import annotations

import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.programs.launching import COMMAND, environment
from tests.torture import truth
from tests.torture.programs import Program

PATIENCE_S = 60.0


class Wrong(Exception):
    """Something is not as it should be; the message says what."""


@dataclass
class Reference:
    """How a program behaves without warplens: the size of its log, how long it ran."""

    size: int
    seconds: float


def reference(program: Program, folder: Path) -> Reference:
    """Run the program alone."""
    folder.mkdir()
    log = folder / "truth"
    begin = time.monotonic()
    done = subprocess.run(
        program.words(log),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    seconds = time.monotonic() - begin
    wait_for(lambda: not truth.alive_in(folder), "what the program left to end")
    if (done.returncode, done.stdout, done.stderr) != (0, "begin\nend 0\n", ""):
        raise Wrong(
            f"without warplens, {program} ends with {done.returncode}, {done.stdout!r}, {done.stderr!r}"
        )
    return Reference(log.stat().st_size, seconds)


def wait_for(condition: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> None:
    """Wait until it holds; Wrong when it does not."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Wrong(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.005)


def stacks(folder: Path) -> str:
    """Where the processes that work in the folder are, for the report of a hang."""
    found = []
    for pid in truth.alive_in(folder):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        found.append(f"process {pid}: {command}")
        debugger = ["gdb", "-batch", "-p", str(pid), "-ex", "thread apply all bt"]
        try:
            found.append(
                subprocess.run(debugger, capture_output=True, text=True, timeout=30, check=False).stdout
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            found.append(f"no stacks: {error}")
    return "\n".join(found)


@dataclass
class Running:
    """The launcher with the program under it. The program's own output goes to files that the launcher never sees."""

    program: Program
    known: Reference
    folder: Path
    rng: random.Random
    name: str = "x"
    words: Sequence[str] = ()
    output: tuple[str, ...] = ("-o", "x")
    terminal: int | None = None
    launcher: subprocess.Popen[str] = field(init=False)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """Where the truth is."""
        return self.folder / f"truth-{self.name}"

    @property
    def report(self) -> Path:
        """Where the report is to be."""
        return self.folder / f"{self.name}.warplens"

    def start(self, with_terminal: bool = False) -> None:
        """Start the launcher, in a process group of its own, or as the leader of a session with a terminal."""
        own = f'exec >"out-{self.name}" 2>"err-{self.name}" "$@"'
        line = [
            *COMMAND,
            "profile",
            "--light",
            *self.output,
            *self.words,
            "sh",
            "-c",
            own,
            "sh",
            *self.program.words(self.log),
        ]
        options: dict[str, object] = (
            {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
        )
        stdin = subprocess.DEVNULL
        if with_terminal:
            self.terminal, stdin = pty.openpty()
            line, options = ["setsid", "--ctty", *line], {}
        with open(self.folder / f"said-{self.name}", "w", encoding="utf-8") as said:
            self.launcher = subprocess.Popen(
                line,
                cwd=self.folder,
                env=environment(**self.variables),
                stdin=stdin,
                stdout=said,
                stderr=said,
                text=True,
                **options,  # type: ignore[call-overload]
            )
        if with_terminal:
            os.close(stdin)

    def text(self, kind: str) -> str:
        """What is in one of the files: `out` and `err` of the program, `said` of the launcher."""
        path = self.folder / f"{kind}-{self.name}"
        return path.read_text(encoding="utf-8", errors="replace")[-2000:] if path.exists() else ""

    def truth(self) -> truth.Truth:
        """What the program wrote."""
        return truth.read(self.log)

    def ended(self) -> bool:
        """Whether the launcher has ended."""
        return self.launcher.poll() is not None

    def wait(self, *, wrong_if_late: bool = True) -> int:
        """Wait for the launcher and for all that works in the folder; return the launcher's exit code."""
        wait_for(self.ended, "the launcher to end")
        wait_for(lambda: not truth.alive_in(self.folder), "the program to end")
        return self.launcher.wait()

    def until_launching(self) -> None:
        """Sleep for a random part of what the launcher needs until the program begins."""
        time.sleep(self.rng.uniform(0, 0.5))

    def until_running(self) -> None:
        """Wait for a random point of the program's log, anywhere from its first record to its last."""
        size = self.rng.randrange(64, max(self.known.size, 65))
        wait_for(
            lambda: self.ended() or (self.log.exists() and self.log.stat().st_size >= size),
            "the program to go on",
        )

    def until_finishing(self) -> None:
        """Wait for the end of the program, and then for a random part of what finishing takes."""
        wait_for(lambda: self.ended() or self.truth().code is not None, "the program to end")
        time.sleep(self.rng.uniform(0, 0.5))

    def until_somewhere(self) -> str:
        """Wait for a random point of the whole run; mostly while the program runs. Return which phase it was."""
        phase = self.rng.choices(("launching", "running", "finishing"), (2, 6, 2))[0]
        getattr(self, f"until_{phase}")()
        return phase

    def send(self, number: int, pid: int) -> None:
        """Send a signal to a process that may have ended."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def send_group(self, number: int) -> None:
        """Send a signal to the launcher and its program together, as a terminal does."""
        try:
            os.killpg(self.launcher.pid, number)
        except ProcessLookupError:
            pass

    def kill_everything(self) -> None:
        """Whatever happens to a round, nothing of it goes on."""
        for pid in truth.alive_in(self.folder):
            self.send(signal.SIGKILL, pid)
        if self.launcher.poll() is None:
            self.launcher.kill()
        self.launcher.wait()
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None
