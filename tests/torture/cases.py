"""What happens to a program while it is recorded, one function per case, and what must be true afterwards.

A case gets a `Scene`, which starts programs, and returns nothing; it raises Wrong. Every case checks that the program's
output and exit code are its own, and that the report holds every range that the program says it closed.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.programs.launching import COMMAND, environment
from tests.torture import truth
from tests.torture.programs import Program
from tests.torture.running import PATIENCE_S, Reference, Running, Wrong, wait_for
from tests.torture.truth import Allowed

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass
class Scene:
    """What a case works with: the program, its behaviour alone, a folder and its own random choices."""

    program: Program
    known: Reference
    folder: Path
    rng: random.Random
    all: list[Running] = field(default_factory=list)

    def run(
        self, name: str = "x", words: tuple[str, ...] = (), *, terminal: bool = False, **more: object
    ) -> Running:
        """Start `warplens profile` with the program."""
        running = Running(self.program, self.known, self.folder, self.rng, name, words, **more)  # type: ignore[arg-type]
        running.start(with_terminal=terminal)
        self.all.append(running)
        return running


Case = Callable[[Scene], None]


def expect(
    running: Running, *, code: int | None = None, signals: tuple[int, ...] = (), said: str | None = None
) -> int:
    """Wait for the end; hold the exit code and the output to what the program itself noted. Return the launcher's exit code."""
    got = running.wait()
    true, out, err = running.truth(), running.text("out"), running.text("err")
    told = running.text("said")
    for word in ("Traceback", "ld.so", "Segmentation", "cannot be preloaded"):
        if word in told:
            raise Wrong(f"the launcher said {told!r}")
    # Python tells of an interrupt where no handler is yet, or any more (the children of a fork server)
    python_interrupted = signal.SIGINT in signals and running.program.shape.language == "py"
    if err and not (python_interrupted and "KeyboardInterrupt" in err):
        raise Wrong(f"the program's stderr is {err!r}")
    if true.code is not None:
        if out != f"begin\nend {true.code}\n":
            raise Wrong(f"the program's output is {out!r}, and it noted the exit code {true.code}")
        # Python takes its handlers back before it ends
        handled = "h" in running.program.flags and running.program.shape.language == "c"
        deadly = [number for number in signals if number == signal.SIGKILL or not handled]
        fine = {true.code, *(128 + number for number in deadly)}
    else:
        fine = {128 + number for number in signals}
        if not signals and code is None:
            raise Wrong(
                f"the program did not come to its end: exit code {got}, output {out!r}, launcher: {told!r}"
            )
        if not "begin\nend 7\n".startswith(out) and not "begin\nend 0\n".startswith(out):
            raise Wrong(f"the program's output is {out!r}")
    if code is not None:
        fine = {code}
    if got not in fine:
        raise Wrong(
            f"the launcher's exit code is {got}, not {sorted(fine)}; the program noted "
            f"{true.code}; it said {told!r}"
        )
    return got


def check(report: Path, runs: list[Running], allowed: Allowed | None = None) -> None:
    """Finish what is unfinished with a command, and compare the report with what the programs say."""
    truths = [running.truth() for running in runs]
    if not report.is_dir():
        if any(one.began for one in truths):
            raise Wrong(f"there is no report {report.name}; the launcher said {runs[0].text('said')!r}")
        return
    done = subprocess.run(
        [*COMMAND, "info", str(report)],
        cwd=report.parent,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        if not any(one.began for one in truths) and "Traceback" not in done.stderr:
            return  # killed before there was anything; it says so
        raise Wrong(f"`warplens info` ends with {done.returncode}: {done.stderr}")
    if wrong := truth.compare(report, truths, allowed or Allowed()):
        raise Wrong("\n".join(wrong))
    left = [
        str(path.relative_to(report))
        for path in report.rglob("*")
        if path.name in ("spool", "pending.d") or ".tmp" in path.name
    ]
    if left:
        raise Wrong(f"left in the report: {left}")


def nothing(scene: Scene) -> None:
    """Nothing happens."""
    running = scene.run()
    expect(running)
    check(running.report, [running])


def wait_primary(scene: Scene) -> None:
    """`--wait primary`: what the program leaves behind goes on, and is recorded up to then."""
    running = scene.run(words=("--wait", "primary"))
    expect(running)
    true = running.truth()
    check(running.report, [running], Allowed(until=true.ended, killed=True, tree=False))


def kill_primary(scene: Scene) -> None:
    """The first process is killed; what it started ends by itself."""
    running = scene.run()
    running.until_running()
    if pid := running.truth().primary:
        running.send(signal.SIGKILL, pid)
    expect(running, signals=(signal.SIGKILL,))
    check(running.report, [running], Allowed(killed=True))


def kill_some(scene: Scene) -> None:
    """Any process but the first is killed, at any time."""
    running = scene.run()
    running.until_running()
    true = running.truth()
    if others := sorted(set(true.began) - {true.primary}):
        for pid in scene.rng.sample(others, min(len(others), scene.rng.choice((1, 2)))):
            if pid in truth.alive_in(scene.folder):
                running.send(signal.SIGKILL, pid)
    expect(running)
    check(running.report, [running], Allowed(killed=True))


def kill_tree(scene: Scene) -> None:
    """Every process but the launcher is killed, as an out-of-memory killer or a container's end may."""
    running = scene.run()
    running.until_running()
    for pid in truth.alive_in(scene.folder):
        if pid != running.launcher.pid:
            running.send(signal.SIGKILL, pid)
    got = running.wait()
    if got not in (137, running.truth().code):
        raise Wrong(f"the launcher's exit code is {got}; it said {running.text('said')!r}")
    check(running.report, [running], Allowed(killed=True))


def kill_all(scene: Scene) -> None:
    """All are killed, the launcher first or last: as when the machine stops."""
    running = scene.run()
    running.until_somewhere()
    pids = truth.alive_in(scene.folder)
    scene.rng.shuffle(pids)
    for pid in pids:
        running.send(signal.SIGKILL, pid)
    running.wait()
    check(running.report, [running], Allowed(killed=True))


def kill_launcher(scene: Scene) -> None:
    """The launcher is killed; the program notices nothing, and the next command finishes the report."""
    running = scene.run()
    running.until_somewhere()
    running.launcher.kill()
    expect(running, code=-9 if not running.ended() else running.launcher.returncode)
    _program_was_left_alone(running)
    check(running.report, [running])


def kill_finishing_twice(scene: Scene) -> None:
    """Finishing is killed, and the command that makes up for it is killed too."""
    running = scene.run()
    running.until_finishing()
    running.launcher.kill()
    running.wait()
    _program_was_left_alone(running)
    for _ in range(scene.rng.choice((1, 2))):
        again = subprocess.Popen(
            [*COMMAND, "info", str(running.report)],
            cwd=scene.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(scene.rng.uniform(0.05, 0.6))
        again.kill()
        again.wait()
    check(running.report, [running])


def _program_was_left_alone(running: Running) -> None:
    true = running.truth()
    if true.began and (true.code != 0 or running.text("out") != "begin\nend 0\n" or running.text("err")):
        raise Wrong(
            f"the program noted {true.code} and said {running.text('out')!r}, {running.text('err')!r}"
        )


def signal_launcher(scene: Scene) -> None:
    """Another process asks the launcher to stop; the program gets that signal."""
    running = scene.run()
    running.until_running()
    number = scene.rng.choice(STOPPING)
    running.send(number, running.launcher.pid)
    _ended_by(running, number)


def signal_group(scene: Scene) -> None:
    """Ctrl-C and the like: launcher and program get the signal together."""
    running = scene.run()
    running.until_running()
    number = scene.rng.choice(STOPPING)
    running.send_group(number)
    impatient = scene.rng.random() < 0.3
    if impatient:
        time.sleep(scene.rng.uniform(0, 0.05))
        running.send_group(number)
    _ended_by(running, number, impatient=impatient)


def hang_up(scene: Scene) -> None:
    """The terminal is closed."""
    running = scene.run(terminal=True)
    running.until_running()
    assert running.terminal is not None
    os.close(running.terminal)
    running.terminal = None
    _ended_by(running, signal.SIGHUP)


def _ended_by(running: Running, number: int, *, impatient: bool = False) -> None:
    """After a stopping signal: what is left then may go on alone, which the report says.

    Who asks twice, or when the program has ended already, ends the launcher itself; the next command makes up for it.
    """
    wait_for(running.ended, "the launcher to end")
    late = impatient or running.truth().ended is not None
    died = (
        running.launcher.returncode
        if late and running.launcher.returncode in (-number, 128 + number)
        else None
    )
    got = expect(running, signals=(number,), code=died)
    until = running.truth().ended if got in (0, 7) else None
    check(running.report, [running], Allowed(killed=True, until=until, tree=False))


@contextmanager
def tmpfs(options: str) -> Iterator[Path]:
    """A small disk of its own."""
    folder = Path(tempfile.mkdtemp(prefix="warplens-torture-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def full_disk(scene: Scene) -> None:
    """The spool's disk is full sooner or later; what is lost is counted."""
    with tmpfs(f"size={scene.rng.randrange(64, 3000)}k") as disk:
        running = scene.run(words=("--spool-dir", str(disk)))
        wait_for(running.ended, "the launcher to end")
        if not running.truth().began and running.launcher.returncode == 1:
            return  # too small to begin with: said before the program runs
        expect(running)
        # full before the launcher could note anything there: then stderr is where it says what was lost
        told = sum(
            int(calls.replace(",", ""))
            for calls in re.findall(r"([\d,]+) calls\s+of\s+NVTX\s+were\s+lost", running.text("said"))
        )
        check(running.report, [running], Allowed(losses=True, told=told))


def full_disk_by_others(scene: Scene) -> None:
    """Another program fills the disk of spool and report at a random moment, and makes room again much later."""
    with tmpfs("size=48m") as disk:
        running = scene.run(output=("-o", str(disk / "x")), words=("--spool-dir", str(disk)))
        running.until_running()
        filler = disk / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError:
                pass
        wait_for(running.ended, "the launcher to end")
        expect(running)  # also where there is no report yet: that is said, and opening it makes it
        filler.unlink()
        check(disk / "x.warplens", [running], Allowed(losses=True))


def deleted_spool(scene: Scene) -> None:
    """Somebody deletes the spool or the whole report while the program runs. What the launcher had seen is rescued."""
    running = scene.run()
    running.until_running()
    seen = frozenset[int]()
    if scene.rng.random() < 0.7:
        time.sleep(0.3)  # the launcher looks four times a second
    descriptors = Path(f"/proc/{running.launcher.pid}/fd")
    try:
        held = [link.readlink().name for link in descriptors.iterdir()]
        if scene.program.shape.mode != "exec":  # one process, but a spool for each of its programs
            seen = frozenset(int(name.rsplit("-", 2)[1]) for name in held if name.endswith(".spool"))
    except OSError:
        pass  # it has ended
    what = scene.rng.choice(("report", "spool"))
    target = running.report if what == "report" else running.report / "spool"
    before = running.truth().code
    if before is None and not running.ended():
        shutil.rmtree(target, ignore_errors=True)
    wait_for(running.ended, "the launcher to end")
    # deleted before the launcher had looked, and no process is left that has it open: there is nothing to save
    gone = not seen and "is not there" in running.text("said")
    expect(running)
    if before is None and not gone:
        check(running.report, [running], Allowed(tree=False, only=seen, killed=True, losses=True))


def two_of_one_name(scene: Scene) -> None:
    """Two launchers want the same report: one gets it, the other says so before its program runs."""
    first = scene.run("x")
    time.sleep(scene.rng.choice((0, 0, 0.05, 0.3, 0.6)))
    second = scene.run("y", output=("-o", "x"), words=("-f",) if scene.rng.random() < 0.5 else ())
    codes = [first.wait(), second.wait()]
    ran = [run for run in (first, second) if run.truth().began]
    if not ran or any(code != 0 and code != 1 for code in codes):
        raise Wrong(f"exit codes {codes}: {first.text('said')!r}, {second.text('said')!r}")
    for run, code in zip((first, second), codes, strict=True):
        if code == 1 and (run in ran or "x.warplens" not in run.text("said")):
            raise Wrong(f"refused with {run.text('said')!r}, program ran: {run in ran}")
        if code == 0:
            _program_was_left_alone(run)
    if len(ran) == 2 and "-f" not in second.words:
        raise Wrong("both ran into one report without a common job")
    check(first.report, ran[-1:] if len(ran) == 2 else ran)


def two_of_one_job(scene: Scene) -> None:
    """Two ranks of a job join in one report, whoever is first."""
    job = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_NTASKS": "2"}
    first = scene.run("x", variables={**job, "SLURM_PROCID": "0"})
    time.sleep(scene.rng.choice((0, 0, 0.05, 0.3, 0.6)))
    second = scene.run("y", output=("-o", "x"), variables={**job, "SLURM_PROCID": "1"})
    killed = scene.rng.random() < 0.3
    if killed:
        victim = scene.rng.choice((first, second))
        victim.until_somewhere()
        victim.launcher.kill()
    for run in (first, second):
        if run.wait() not in (0, -9):
            raise Wrong(f"{run.name}: {run.text('said')!r}")
        _program_was_left_alone(run)
    check(first.report, [first, second])


def two_without_names(scene: Scene) -> None:
    """Two launchers choose names by themselves: two whole reports."""
    runs = [scene.run(name, output=()) for name in ("x", "y")]
    for run in runs:
        expect(run)
    reports = sorted(scene.folder.glob("report*.warplens"))
    if len(reports) != 2:
        raise Wrong(f"there are {[path.name for path in reports]}")
    for run in runs:
        (report,) = [path for path in reports if path.name in run.text("said")]
        check(report, [run])


def ranges_open_windows(scene: Scene) -> None:
    """Ranges of some name open and close windows, while others do not care; sometimes the launcher or everything is killed."""
    message = scene.rng.choice(("t1", "t2", "t3", "t22", "t1001", "t1005"))
    end = scene.rng.choice(("stop", "repeat", "repeat:7", "none"))
    running = scene.run(words=("-c", "nvtx", "-p", message, "--capture-range-end", end))
    _perhaps_killed(running)


def delay_and_duration(scene: Scene) -> None:
    """The recording begins late and ends early; the program continues alone."""
    duration = f"{scene.rng.uniform(0.02, 0.4):.3f}"
    running = scene.run(words=("--delay", f"{scene.rng.uniform(0, 0.3):.3f}", "--duration", duration))
    expect(running)
    check(running.report, [running], Allowed(windows=True, killed=True, tree=False))


def flight_recorder(scene: Scene) -> None:
    """Only the last moments are kept, and those that somebody asked for."""
    running = scene.run(
        words=("--keep-last", f"{scene.rng.uniform(0.05, 0.5):.3f}", "--session-new", _session(scene))
    )
    if scene.rng.random() < 0.5:
        running.until_running()
        _command(scene, "stop", "--keep", "0.1", "--session", _session(scene))
    _perhaps_killed(running)


def started_and_stopped(scene: Scene) -> None:
    """Somebody opens and closes windows from another terminal."""
    later = scene.rng.random() < 0.5
    running = scene.run(
        words=(*(["--start-later", "true"] if later else []), "--session-new", _session(scene))
    )
    running.until_running()
    for number in range(scene.rng.choice((1, 2, 3))):
        _command(scene, ("start", "stop")[(number + (not later)) % 2], "--session", _session(scene))
    _perhaps_killed(running)


def shut_down(scene: Scene) -> None:
    """Somebody ends the recording; the program continues."""
    running = scene.run(words=("--session-new", _session(scene)))
    running.until_somewhere()
    _command(scene, "shutdown", "--session", _session(scene))
    expect(running)
    check(running.report, [running], Allowed(windows=True, killed=True, tree=False))


def max_size(scene: Scene) -> None:
    """The spool may only grow so far."""
    running = scene.run(words=("--max-size", f"{scene.rng.randrange(1024, 6000)}k"))
    expect(running)
    check(running.report, [running], Allowed(windows=True, losses=True, killed=True))


def _session(scene: Scene) -> str:
    return f"torture-{os.getpid()}-{scene.folder.name}"


def _command(scene: Scene, *words: str) -> None:
    """Give a command to the session; it may be over, and then says so."""
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=scene.folder.parent,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    over = done.returncode in (1, 2) and "session" in done.stderr.lower()
    if not (done.returncode == 0 or over) or "Traceback" in done.stderr:
        raise Wrong(f"{words} ends with {done.returncode}: {done.stderr!r}")


def _perhaps_killed(running: Running) -> None:
    """Let it end, or kill launcher or all of it somewhere; then look at its windows."""
    what = running.rng.choice(("nothing", "launcher", "all"))
    if what == "nothing":
        expect(running)
    else:
        running.until_somewhere()
        if what == "launcher":
            running.launcher.kill()
        else:
            for pid in truth.alive_in(running.folder):
                running.send(signal.SIGKILL, pid)
        running.wait()
        if what == "launcher":
            _program_was_left_alone(running)
    check(running.report, [running], Allowed(windows=True, killed=True))


CASES: dict[str, tuple[Case, int]] = {  # name -> what happens, how often
    "nothing": (nothing, 4),
    "wait-primary": (wait_primary, 1),
    "kill-primary": (kill_primary, 3),
    "kill-some": (kill_some, 3),
    "kill-tree": (kill_tree, 3),
    "kill-all": (kill_all, 4),
    "kill-launcher": (kill_launcher, 4),
    "kill-finishing": (kill_finishing_twice, 3),
    "signal-launcher": (signal_launcher, 3),
    "signal-group": (signal_group, 3),
    "hang-up": (hang_up, 2),
    "deleted": (deleted_spool, 3),
    "two-of-one-name": (two_of_one_name, 2),
    "two-of-one-job": (two_of_one_job, 2),
    "two-without-names": (two_without_names, 1),
    "range-windows": (ranges_open_windows, 4),
    "delay-duration": (delay_and_duration, 3),
    "keep-last": (flight_recorder, 3),
    "start-stop": (started_and_stopped, 3),
    "shutdown": (shut_down, 2),
    "max-size": (max_size, 3),
}
NEED_TMPFS: dict[str, tuple[Case, int]] = {
    "full-disk": (full_disk, 3),
    "filled-disk": (full_disk_by_others, 2),
}
