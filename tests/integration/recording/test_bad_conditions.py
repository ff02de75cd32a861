"""What happens to the program, and to what it recorded, when things go wrong: a kill, a crash, no space, tight limits, odd programs."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment, until, warplens
from tests.support.reports.querying import rows
from tests.support.thorough import few

Target = Callable[..., Path]

pytestmark = pytest.mark.require("native", "gcc")


def lost(report: Path, what: str) -> int:
    """How many records of a kind the report's diagnostics say were dropped."""
    sql = f"SELECT coalesce(sum(count), 0)::BIGINT AS n FROM diagnostics WHERE code = 'dropped-records' AND message LIKE '%{what} record%'"
    return int(rows(report, sql)[0][0])


def profiled(
    folder: Path, *words: str | Path, code: int = 0, out: str = "done\n", **variables: str
) -> tuple[Path, str]:
    """Run a program that must end with `code` and print `out` as it would without us; return the report and what we said."""
    done = warplens("profile", "-f", "-o", folder / "run", *words, cwd=folder, env=environment(**variables))
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert "Traceback" not in done.stderr
    return folder / "run.warplens", done.stderr


def child_of(launcher: subprocess.Popen[str]) -> int:
    """Return the pid of the program. The launcher's helpers are forks, so they have its command line."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
    own = Path(f"/proc/{launcher.pid}/cmdline").read_bytes()

    def programs() -> list[str]:
        pids = children.read_text().split()
        return [pid for pid in pids if Path(f"/proc/{pid}/cmdline").read_bytes() not in (own, b"")]

    until(programs, "the program")
    return int(programs()[0])


def test_a_kill_in_the_middle_loses_no_closed_range(tmp_path: Path, target: Target) -> None:
    threads, counts = 8, tmp_path / "counts"
    launcher = subprocess.Popen(
        [
            *COMMAND,
            "profile",
            "--light",
            "-q",
            "-o",
            "run",
            target("nvtx_storm"),
            str(threads),
            "1000000",
            "wait",
            counts,
        ],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "ready\n"  # each thread is half through
    os.kill(child_of(launcher), signal.SIGKILL)
    _, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 128 + signal.SIGKILL, err
    report = tmp_path / "run.warplens"
    closed = struct.unpack(f"{threads}q", counts.read_bytes())
    assert sum(closed) > 4_000_000
    steps = rows(
        report,
        """SELECT any_value(w.message) AS worker, count(*) FILTER (NOT s.unfinished)::BIGINT AS closed,
               count(*) FILTER (s.unfinished)::BIGINT AS open, count(*) FILTER (s.parent != w.id)::BIGINT AS elsewhere
           FROM nvtx_ranges s JOIN nvtx_ranges w USING (thread) WHERE s.message = 'step' AND w.message LIKE 'worker%' GROUP BY s.thread
           ORDER BY worker""",
    )
    assert [worker for worker, *_ in steps] == [f"worker {thread}" for thread in range(threads)]
    for counted, (worker, recorded, unfinished, elsewhere) in zip(closed, steps, strict=True):
        assert recorded - counted in (0, 1), (
            worker
        )  # killed between the end of the range and the program's own count
        assert unfinished in (0, 1)
        assert elsewhere == 0
    assert rows(
        report, "SELECT count(*)::INT AS n FROM nvtx_ranges WHERE message LIKE 'worker%' AND unfinished"
    ) == [(threads,)]
    assert rows(report, "SELECT count(*)::INT AS n FROM diagnostics") == [(0,)]


@pytest.mark.parametrize(
    ("mode", "code"),
    few(
        [
            ("segv", 128 + signal.SIGSEGV),
            ("_exit", 5),
            ("null", 128 + signal.SIGSEGV),
            ("abort", 128 + signal.SIGABRT),
        ],
        2,
    ),
)
def test_a_crash_keeps_what_was_recorded(mode: str, code: int, tmp_path: Path, target: Target) -> None:
    report, _ = profiled(tmp_path, "-q", target("nvtx_odd"), mode, code=code, out="")
    assert rows(report, "SELECT message, unfinished FROM nvtx_ranges ORDER BY id") == [
        ("first", False),
        ("open", True),
    ]
    assert rows(report, "SELECT exit_status, exited FROM processes") == [(code, False)]


def test_an_open_range_lasts_until_the_kill(tmp_path: Path) -> None:
    text = """
import os, signal, time
from warplens import nvtx
nvtx.push_range("stuck")
time.sleep(0.25)
os.kill(os.getpid(), signal.SIGKILL)
"""
    report, _ = profiled(tmp_path, "-q", sys.executable, "-c", text, code=128 + signal.SIGKILL, out="")
    ((unfinished, lasted, rest),) = rows(
        report,
        """SELECT unfinished, r."end" - r.start AS d, p."end" - r."end" AS rest FROM nvtx_ranges r JOIN processes p USING (process)""",
    )
    assert unfinished
    assert lasted >= 250_000_000
    assert rest == 0


@pytest.fixture
def tiny_disk(tmpfs: Callable[[str], Path]) -> Path:
    """A file system of 4 MiB, all our own."""
    return tmpfs("size=4m")


@pytest.mark.require("tmpfs")
def test_a_full_disk_costs_ranges_which_are_counted(tmp_path: Path, tiny_disk: Path, target: Target) -> None:
    report, said = profiled(tmp_path, "--spool-dir", tiny_disk, target("nvtx_storm"), "4", "100000")
    recorded = rows(report, "SELECT count(*)::INT AS n FROM nvtx_ranges")[0][0]
    assert 50_000 < recorded < 110_000
    assert recorded + lost(report, "range") == 4 * (100_000 + 1)
    # The ranges around all others end last, and are kept all the same where they began before the disk was full.
    outer = rows(report, "SELECT DISTINCT unfinished, depth FROM nvtx_ranges WHERE message LIKE 'worker%'")
    assert outer == [(False, 0)]
    assert said.lstrip().startswith("Error")
    assert "No space left on device; name a directory with more room" in " ".join(said.split())


@pytest.mark.require("tmpfs")
def test_a_disk_that_others_fill_up(tmp_path: Path, tiny_disk: Path, target: Target) -> None:
    """Nothing is left for the spool when the program starts; it is room again for the next one."""
    fill = f"head -c 8m /dev/zero > {tiny_disk}/file; {target('nvtx_odd')} files 0; rm {tiny_disk}/file; {target('nvtx_odd')} files 10"
    report, said = profiled(
        tmp_path, "--spool-dir", tiny_disk, "sh", "-c", f"{{ {fill}; }} 2>/dev/null", out="done\ndone\n"
    )
    assert rows(
        report, "SELECT message, count(*)::INT FROM nvtx_ranges GROUP BY message ORDER BY message"
    ) == [
        ("first", 1),
        ("open", 1),
        ("range", 10),
    ]
    assert "could not record" in said


LIMITS = {
    "files": (100_000, "raise the program's `ulimit -n`"),
    "file size": (2_000_000, "raise the program's `ulimit -f`"),
    "memory": (2_000_000, "raise the program's `ulimit -v`"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_of_the_program_cost_ranges_not_signals(limit: str, tmp_path: Path, target: Target) -> None:
    count, why = LIMITS[limit]
    report, said = profiled(tmp_path, target("nvtx_odd"), limit, str(count))
    recorded = rows(report, "SELECT count(*)::INT AS n FROM nvtx_ranges")[0][0]
    assert 0 < recorded < count
    assert recorded + lost(report, "range") == count + 2  # "first" and "open"
    assert why in " ".join(said.split())


@pytest.mark.parametrize(
    "limit",
    few(map(pytest.param, [("nofile", "4"), ("fsize", "4096"), ("fsize", "0"), ("as", "16777216")]), 2),
)
def test_limits_from_the_start(limit: tuple[str, str], tmp_path: Path, target: Target) -> None:
    limited: list[str | Path] = ["prlimit", f"--{limit[0]}={limit[1]}", target("nvtx_odd"), "_exit"]
    if (
        shutil.which("prlimit") is None
        or subprocess.run(limited, check=False, capture_output=True).returncode != 5
    ):
        pytest.skip("the program itself does not run within these limits here")
    report, said = profiled(tmp_path, *limited, code=5, out="")
    recorded = rows(report, "SELECT count(*)::INT AS n FROM nvtx_ranges")[0][0]
    assert recorded == 2 or said.lstrip().startswith(("Error", "Warning"))


@pytest.mark.require("tmpfs")
@pytest.mark.parametrize("when", few(["while", "before"]))
def test_a_spool_directory_that_becomes_read_only(
    when: str, tmp_path: Path, tiny_disk: Path, target: Target
) -> None:
    """As after an error of the disk: what is mapped stays writable, and nothing can be opened for writing any more."""
    read_only = f"mount --bind {tiny_disk} {tiny_disk} && mount -o remount,bind,ro {tiny_disk}"
    program = target("nvtx_odd")
    line = (
        f"{read_only}; {program} files 10"
        if when == "before"
        else f"{program} files 10; {read_only}; {program} files 10"
    )
    report, said = profiled(
        tmp_path, "--spool-dir", tiny_disk, "sh", "-c", line, out="done\n" * (1 if when == "before" else 2)
    )
    subprocess.run(["umount", tiny_disk], check=True)
    assert "Read-only file system" in said
    assert rows(report, "SELECT count(*)::INT AS n FROM nvtx_ranges") == [(0 if when == "before" else 12,)]


THREADS = {"one by one": 10_000, "together": 2_000}


@pytest.mark.parametrize("how", few(THREADS))
def test_many_threads_with_one_range_each_take_little_room(how: str, tmp_path: Path, target: Target) -> None:
    count = THREADS[how]
    report, _ = profiled(tmp_path, "-q", "--keep-raw", target("nvtx_odd"), how, str(count))
    sql = "SELECT count(*)::INT AS n, count(DISTINCT thread)::INT AS t, max(depth) AS d FROM nvtx_ranges WHERE message = 'in thread'"
    assert rows(report, sql) == [(count, count, 0)]
    used = sum(file.stat().st_blocks * 512 for file in report.rglob("*.spool"))
    assert used <= (256 << 20) * count // 10_000 + (64 << 20)  # a step of the file is 64 MiB at most
    assert rows(report, "SELECT count(*)::INT AS n FROM diagnostics") == [(0,)]


@pytest.mark.parametrize("mode", few(["children", "children of threads"]))
def test_many_children(mode: str, tmp_path: Path, target: Target) -> None:
    count = 200
    report, _ = profiled(
        tmp_path, "-q", "--keep-raw", target("nvtx_odd"), mode, str(count), out="failed 0\ndone\n"
    )
    of_children = "FROM nvtx_ranges WHERE message LIKE 'child %' AND NOT inherited AND NOT unfinished"
    sql = f"SELECT count(DISTINCT message)::INT AS n, count(DISTINCT process)::INT AS p {of_children}"
    assert rows(report, sql) == [(count, count)]
    # What other threads had open at the fork is nothing that the child could close.
    sql = "SELECT message, style, count(*)::INT FROM nvtx_ranges WHERE inherited AND message != 'busy' GROUP BY ALL"
    assert rows(report, sql) == [("open", "PushPop", count)]
    if mode == "children":  # else each takes over the thousands of names that its parent knew
        used = sum(file.stat().st_blocks * 512 for file in report.rglob("*.spool"))
        assert used <= (512 << 20) * count // 1000
    assert rows(report, "SELECT count(*)::INT AS n FROM diagnostics") == [(0,)]


def test_odd_names(tmp_path: Path, target: Target) -> None:
    report, _ = profiled(tmp_path, "-q", target("nvtx_odd"), "names")
    names = [name for (name,) in rows(report, "SELECT message FROM nvtx_ranges ORDER BY id")]
    lengthy = names.pop(2)
    assert names == [
        "first",
        "open",
        "",
        "bad �� utf-8",
        "half �",
        "tab\tnew\nline \x1b[31mred",
        "日本語",
        None,
        None,
    ]
    assert set(lengthy) == {"x"}
    assert len(lengthy) >= 32_768
    for command, *more in (
        ("stats",),
        ("timeline",),
        ("info",),
        ("query", "SELECT message FROM nvtx_ranges"),
    ):
        done = warplens(command, report, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout, "a name must not steer the terminal"


def test_a_name_that_is_cut_is_told(tmp_path: Path, target: Target) -> None:
    report, _ = profiled(tmp_path, "-q", target("nvtx_odd"), "names")
    assert rows(report, "SELECT count::INT FROM diagnostics WHERE code = 'cut-names'") == [(1,)]


def test_a_signal_handler_that_annotates_cannot_hang_the_program(tmp_path: Path, target: Target) -> None:
    count = 300_000  # new names each time: most of it is spent where locks are held
    report, _ = profiled(tmp_path, "-q", target("nvtx_odd"), "signals", str(count))
    kept = rows(
        report, "SELECT count(*)::INT FROM nvtx_ranges WHERE message LIKE 'main %' AND style = 'PushPop'"
    )[0][0]
    assert kept >= count * 0.99
    assert rows(report, "SELECT count(*) > 0 FROM nvtx_ranges WHERE message LIKE 'handler %'") == [(True,)]


def test_more_domains_than_there_are_numbers(tmp_path: Path, target: Target) -> None:
    count = 70_000
    report, said = profiled(tmp_path, target("nvtx_odd"), "domains", str(count))
    known = rows(report, "SELECT count(*)::INT AS n, count(DISTINCT domain)::INT AS d FROM nvtx_ranges")[0]
    assert known[0] == count + 2
    assert known[1] >= 65_000
    assert lost(report, "domain") >= count - 65_535
    assert "there were more domains than a process can have" in " ".join(said.split())


def test_deep_nesting(tmp_path: Path, target: Target) -> None:
    report, _ = profiled(tmp_path, "-q", target("nvtx_storm"), "2", "10000", "deep")
    sql = "SELECT count(*)::INT AS n, max(depth) AS d, count(DISTINCT depth)::INT AS l FROM nvtx_ranges WHERE message = 'deep'"
    assert rows(report, sql) == [(20_000, 10_000, 10_000)]
    for command in ("stats", "timeline"):
        assert warplens(command, report, cwd=tmp_path).returncode == 0


ODD_PYTHON = """
import os, sys, threading
from warplens import nvtx
os.write(1, bytes(range(256)))
os.write(2, bytes(reversed(range(256))))
for text in ("nul\\0inside", "lone \\udc80 surrogate", "größe/日本 語", ""):
    with nvtx.annotate(text, domain="dömain " + text, category="kätegorie"):
        nvtx.mark(text, payload=2**63 - 1)
thread = threading.Thread(target=nvtx.mark, args=("in thread",), name="Fädchen")
thread.start()
thread.join()
print(*sys.argv[1:])
sys.exit(3)
"""


def test_output_is_the_same_byte_for_byte_and_names_survive(tmp_path: Path) -> None:
    """Spaces and letters beyond ASCII everywhere: in the names of files, folders, arguments, ranges."""
    folder = tmp_path / "ein Ordner 日本"
    folder.mkdir()
    path = folder / "mein Prögramm.py"
    path.write_text(ODD_PYTHON, encoding="utf-8")
    command = [sys.executable, str(path), "ein Wort", "ü", "--flag=$HOME *"]
    bare = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, check=False)
    under = subprocess.run(
        [*COMMAND, "profile", "--light", "-q", "-o", "mein Bericht", "--spool-dir", "spöol dir", *command],
        cwd=folder,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert (bare.returncode, bare.stdout[:256]) == (3, bytes(range(256)))
    assert (under.returncode, under.stdout, under.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    report = folder / "mein Bericht.warplens"
    named = rows(report, "SELECT message, domain, category FROM nvtx_ranges ORDER BY id")
    assert named[2:] == [("größe/日本 語", "dömain größe/日本 語", "kätegorie"), ("", "dömain ", "kätegorie")]
    assert len(named) == 4
    assert "mein Prögramm.py" in rows(report, "SELECT command FROM processes")[0][0]


@pytest.mark.parametrize("number", few([signal.SIGPROF, signal.SIGUSR1]))
def test_signals_of_the_program_reach_it(number: signal.Signals, tmp_path: Path, target: Target) -> None:
    """The agent takes no signal for itself: a program that uses one for its own purposes is not disturbed."""
    text = f"""
import os, signal
from warplens import nvtx
got = []
signal.signal({int(number)}, lambda *_: got.append(1))
for _ in range(100):
    with nvtx.annotate("x"):
        os.kill(os.getpid(), {int(number)})
print(len(got))
"""
    report, _ = profiled(tmp_path, "-q", sys.executable, "-c", text, out="100\n")
    assert rows(report, "SELECT count(*)::INT AS n FROM nvtx_ranges") == [(100,)]
