"""`warplens profile` and signals: the program gets what it would get without a launcher, and the report is still written."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
import warnings
from pathlib import Path

import pytest

from tests.support.programs.launching import (
    COMMAND,
    alive,
    codes,
    environment,
    heard,
    info,
    program,
    start_profile,
    until,
    warplens,
)
from tests.support.thorough import few

pytestmark = pytest.mark.require("native")

WAITING = "waiting for its child processes"  # said once the program has ended
READY = """
import threading
open("ready", "w").write(str(os.getpid()))
"""
COUNTING = """
got = []
def note(number, frame):
    got.append(number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGWINCH, signal.SIGRTMIN + 2):
    signal.signal(number, note)
"""
UNTIL_SIGNALLED = """
end = time.monotonic() + 100
while not got and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.3)  # a second one would come now
os.write(1, f"got {got}\\n".encode())
sys.exit(7)
"""


def _ready(cwd: Path) -> int:
    until(lambda: (cwd / "ready").exists() and (cwd / "ready").read_text(), "the program to be ready")
    return int((cwd / "ready").read_text())


def _leave(path: Path) -> Path:
    """A program that leaves another one running, until there is a file `go`, and ends."""
    child = "open('child','w').write(str(os.getpid()))\n        until('go')\n        open('child-ended','w')"
    text = f"""
def until(path):
    end = time.monotonic() + 200
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.01)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        for number in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        import warplens.nvtx
        with nvtx.annotate("left behind"):
            pass
        {child}
    os._exit(0)
os.wait()
while not os.path.exists("child") or not open("child").read():
    time.sleep(0.01)
sys.exit(5)
"""
    return program(path, text)


@pytest.mark.parametrize("number", few([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))
def test_a_killed_program_is_128_plus_the_signal(number: signal.Signals, tmp_path: Path) -> None:
    path = program(tmp_path / "p.py", f"nvtx.push_range('open'); os.kill(os.getpid(), {int(number)})")
    done = warplens("profile", "-o", "x", path, cwd=tmp_path)
    assert done.returncode == 128 + number
    assert f"killed by {number.name}" in done.stderr
    facts = info(tmp_path / "x.warplens")
    assert facts["parts"][0]["exit_status"] == 128 + number
    assert facts["tables"]["nvtx_ranges"] == 12


@pytest.mark.parametrize(
    "number",
    few(
        [
            signal.SIGTERM,
            signal.SIGINT,
            signal.SIGRTMIN + 2,
            signal.SIGHUP,
            signal.SIGQUIT,
            signal.SIGUSR1,
            signal.SIGWINCH,
        ],
        3,
    ),
)
def test_a_signal_to_the_launcher_reaches_the_program_once(number: int, tmp_path: Path) -> None:
    launcher = start_profile(tmp_path, program(tmp_path / "p.py", COUNTING + READY + UNTIL_SIGNALLED))
    _ready(tmp_path)
    os.kill(launcher.pid, number)
    out, err = launcher.communicate(timeout=60)
    assert out == f"got [{int(number)}]\n", err
    assert launcher.returncode == 7
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 11


@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGTERM]))
def test_a_signal_to_the_whole_group_reaches_the_program_once(number: int, tmp_path: Path) -> None:
    """A second SIGINT would interrupt the clean-up that the first one began: servers then lose their exit code."""
    launcher = start_profile(tmp_path, program(tmp_path / "p.py", COUNTING + READY + UNTIL_SIGNALLED))
    _ready(tmp_path)
    os.killpg(launcher.pid, number)
    out, err = launcher.communicate(timeout=60)
    assert out == f"got [{int(number)}]\n", err
    assert launcher.returncode == 7
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 11


def test_an_asyncio_server_ends_as_without_us(tmp_path: Path) -> None:
    """By SIGINT to the group, and by SIGINT to the launcher; its clean-up runs whole."""
    text = """
import asyncio
async def main():
    try:
        async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server:
            open("ready", "w").write(str(os.getpid()))
            await server.serve_forever()
    finally:
        await asyncio.sleep(0.3)
        print("cleaned up", flush=True)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(9)
"""
    path = program(tmp_path / "p.py", text)
    for way, send in (("group", os.killpg), ("launcher", os.kill)):
        (tmp_path / way).mkdir()
        launcher = start_profile(tmp_path / way, path)
        _ready(tmp_path / way)
        send(launcher.pid, signal.SIGINT)
        out, err = launcher.communicate(timeout=60)
        assert (out, launcher.returncode) == ("cleaned up\n", 9), err


def test_a_program_that_dies_of_the_passed_on_signal(tmp_path: Path) -> None:
    launcher = start_profile(tmp_path, program(tmp_path / "p.py", READY + "time.sleep(200)"))
    _ready(tmp_path)
    launcher.terminate()
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + signal.SIGTERM, err
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 11


def test_a_signal_that_is_ignored_does_not_end_the_waiting(tmp_path: Path) -> None:
    """As under nohup: the hang-up of the terminal means nothing to the program, nor to what it left running."""
    line = "trap '' HUP; exec \"$@\""
    words = [
        "sh",
        "-c",
        line,
        "sh",
        *COMMAND,
        "profile",
        "--light",
        "-o",
        "x",
        str(_leave(tmp_path / "p.py")),
    ]
    launcher = subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert launcher.stderr is not None
    heard(launcher.stderr, WAITING)
    os.kill(launcher.pid, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        launcher.wait(6)  # longer than what gets a SIGTERM is given
    (tmp_path / "go").touch()
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 5, err
    assert (tmp_path / "child-ended").exists()


def test_ignored_and_blocked_signals_stay_so_in_the_program(tmp_path: Path) -> None:
    text = """
status = open("/proc/self/status").read()
mask = {line.split(":")[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigBlk", "SigIgn"))}
usual = (1 << 31) - 1 & ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)  # 32 and 33 are the C library's own
print(mask["SigBlk"], mask["SigIgn"] & usual)
"""
    path = program(tmp_path / "p.py", text)
    bare = subprocess.run(
        ["sh", "-c", "trap '' HUP INT; exec \"$0\"", path],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    line = 'trap "" HUP INT; exec "$@"'
    under = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, "profile", "--light", "-q", path],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert under.stdout == bare.stdout
    # Python ignores SIGPIPE for itself: the program must not inherit that
    status = "grep '^SigIgn' /proc/self/status"
    bare = subprocess.run(["sh", "-c", status], capture_output=True, text=True, check=True)
    under = subprocess.run(
        [*COMMAND, "profile", "--light", "-q", "sh", "-c", status],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    usual = (1 << 31) - 1
    assert int(under.stdout.split()[1], 16) & usual == int(bare.stdout.split()[1], 16) & usual


class Terminal:
    """The command line on a terminal of its own."""

    def __init__(self, cwd: Path, *words: str | Path) -> None:
        self.output = ""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of other threads, which a child that runs a program does not miss
            self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(
                COMMAND[0],
                [*COMMAND, "profile", "--light", "-o", "x", *map(str, words)],
                environment(TERM="xterm", COLUMNS="80"),
            )

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def read_until(self, text: str) -> bool:
        """Read until this was written; False where the last process has closed the terminal before."""
        end = time.monotonic() + 60
        while not text or text not in self.output:
            assert time.monotonic() < end, f"waited for {text!r}: {self.output}"
            ready, _, _ = select.select([self.master], [], [], 1)
            try:
                chunk = os.read(self.master, 65536) if ready else b""
            except OSError:
                return False
            self.output += chunk.decode()
        return True

    def read(self) -> int:
        """Read until the end and return the exit code."""
        assert not self.read_until("")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        os.close(self.master)


def test_the_terminal_is_the_programs(tmp_path: Path) -> None:
    text = "print('tty', [os.isatty(n) for n in range(3)], os.getpgrp() == os.tcgetpgrp(0), input('name? '))"
    terminal = Terminal(tmp_path, program(tmp_path / "p.py", text))
    terminal.type("Ada\n")
    assert terminal.read() == 0
    terminal.close()
    assert "tty [True, True, True] True Ada" in terminal.output
    assert "Recorded" in terminal.output


def test_ctrl_c_reaches_the_program_once_and_the_report_is_written(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, program(tmp_path / "p.py", COUNTING + READY + UNTIL_SIGNALLED))
    _ready(tmp_path)
    terminal.type("\x03")
    assert terminal.read() == 7
    terminal.close()
    assert f"got [{int(signal.SIGINT)}]" in terminal.output
    assert "11 ranges" in terminal.output


def test_ctrl_c_on_a_program_that_does_not_catch_it(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, program(tmp_path / "p.py", READY + "time.sleep(200)"))
    _ready(tmp_path)
    terminal.type("\x03")
    assert terminal.read() == 128 + signal.SIGINT
    terminal.close()
    assert "KeyboardInterrupt" in terminal.output
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 11


def test_a_hang_up_still_writes_the_report(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, program(tmp_path / "p.py", READY + "time.sleep(200)"))
    program_pid = _ready(tmp_path)
    terminal.close()
    assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) in (128 + signal.SIGHUP, 1)
    assert not alive(program_pid)
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == 11


def test_all_waits_for_what_the_program_left_running(tmp_path: Path) -> None:
    launcher = start_profile(tmp_path, _leave(tmp_path / "p.py"))
    assert launcher.stderr is not None
    heard(launcher.stderr, WAITING)
    (tmp_path / "go").touch()
    out, err = launcher.communicate(timeout=60)
    assert (launcher.returncode, out) == (5, ""), err
    assert (tmp_path / "child-ended").exists()
    facts = info(tmp_path / "x.warplens")
    assert facts["tables"]["nvtx_ranges"] >= 12
    assert [row["code"] for row in facts["diagnostics"] if row["severity"] != "info"] == []


def test_primary_does_not_wait_and_says_who_still_runs(tmp_path: Path) -> None:
    launcher = start_profile(tmp_path, "--wait=primary", _leave(tmp_path / "p.py"))
    _, err = launcher.communicate(timeout=60)
    child = int((tmp_path / "child").read_text())
    try:
        assert launcher.returncode == 5, err
        assert alive(child)
        assert f"({child})" in err
        assert "still-running" in codes(tmp_path / "x.warplens")
    finally:
        os.kill(child, signal.SIGKILL)


def test_the_second_ctrl_c_stops_waiting(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, _leave(tmp_path / "p.py"))
    terminal.read_until("Ctrl-C twice")
    child = int((tmp_path / "child").read_text())
    try:
        terminal.type("\x03")
        time.sleep(1.5)  # a second one that comes before the first is taken would be the same one
        assert os.waitpid(terminal.pid, os.WNOHANG) == (0, 0)
        terminal.type("\x03")
        assert terminal.read() == 5
        terminal.close()
        assert alive(child)
        assert "still-running" in codes(tmp_path / "x.warplens")
    finally:
        os.kill(child, signal.SIGKILL)


def test_sigterm_while_waiting_ends_the_rest(tmp_path: Path) -> None:
    launcher = start_profile(tmp_path, _leave(tmp_path / "p.py"))
    assert launcher.stderr is not None
    heard(launcher.stderr, WAITING)
    child = int((tmp_path / "child").read_text())
    launcher.terminate()
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 5, err
    assert not alive(child)
    assert not (tmp_path / "child-ended").exists()
