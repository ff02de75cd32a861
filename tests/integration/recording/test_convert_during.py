"""A report that is written while its program runs: killed at its worst moments, and where the disk is full."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.programs.launching import COMMAND, environment, info, program, until
from tests.support.programs.memory_cgroup import memory_cgroup
from tests.support.thorough import few
from warplens.convert.finish import finish, snapshot
from warplens.handover import pending

pytestmark = pytest.mark.require("native")
_PATIENCE_S = 120.0
BATCH = 20_000
# Says how many ranges it has closed before it goes on; it waits, and ends, when a file says so.
STORM = f"""
import pathlib
folder = pathlib.Path(sys.argv[1])
closed = 0
nvtx.push_range("main")
with open(folder / "closed", "wb", 0) as count:
    while not (folder / "end").exists():
        for _ in range({BATCH}):
            nvtx.push_range("one")
            nvtx.pop_range()
        closed += {BATCH}
        os.pwrite(count.fileno(), str(closed).encode(), 0)
        time.sleep(0.15)
        while (folder / "wait").exists():
            time.sleep(0.01)
nvtx.pop_range()
sys.exit(7)
"""


# Starts short programs, many at once, until a file says so. The converter gets only the time that it leaves.
BUILD = """
import pathlib, subprocess
folder = pathlib.Path(sys.argv[1])
while not (folder / "end").exists():
    running = [subprocess.Popen(["/bin/sh", "-c", "/bin/true; /bin/cat /etc/passwd > /dev/null"]) for _ in range(8)]
    for one in running:
        one.wait()
    time.sleep(0.2)
sys.exit(7)
"""


@contextmanager
def recorded(
    folder: Path,
    *options: str,
    report: str = "x",
    storm: str = STORM,
    wrap: Callable[..., list[str]] = lambda *words: [*map(str, words)],
) -> Iterator[subprocess.Popen[str]]:
    """Run the program with its report being written; it ends with the block. `wrap` makes a command that runs its words elsewhere."""
    path = program(folder / "storm.py", storm)
    words = [*COMMAND, "profile", "--light", "-o", report, *options, str(path), str(folder)]
    launcher = subprocess.Popen(
        wrap(*words), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield launcher
    finally:
        (folder / "wait").unlink(missing_ok=True)
        (folder / "end").touch()


def is_written(folder: Path, table: str = "nvtx_ranges") -> bool:
    """Whether part of a table was written by now."""
    return any(path.stat().st_size > 4 for path in folder.glob(f"x.warplens/tables/{table}/*.during"))


def allocated(folder: Path) -> int:
    """Return the bytes of disk that the spool takes, copies of what was taken out included."""
    return sum(path.stat().st_blocks * 512 for path in folder.glob("x.warplens/spool/*/*.spool*"))


def written(folder: Path) -> int:
    """Return how long the spool file is."""
    return sum(path.stat().st_size for path in folder.glob("x.warplens/spool/*/*.spool"))


def is_given_back(folder: Path, share: float = 0.0) -> bool:
    """Whether the disk has got back some of what was written: 4 MiB, and this share."""
    return allocated(folder) < (1 - share) * written(folder) - (4 << 20)


def children(pid: int) -> dict[int, str]:
    """Return the children of a process, and their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid
            ):
                found[int(entry.name)] = (entry / "cmdline").read_text()
        except OSError:
            continue
    return found


def tables(report: Path) -> dict[str, pa.Table]:
    found = {}
    for folder in (report / "tables").iterdir():
        (file,) = folder.iterdir()
        rows = pq.read_table(file)
        found[folder.name] = pa.table(
            [
                column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
                for column in rows.columns
            ],
            names=rows.column_names,
        )
    return found


def test_a_report_written_during_the_run_equals_one_written_at_the_end(tmp_path: Path) -> None:
    with recorded(tmp_path, "--keep-raw", "-t", "nvtx,osrt", "--python-sampling", "true") as launcher:
        until(lambda: is_written(tmp_path), "part of the report", _PATIENCE_S)
        (converter,) = (pid for pid, line in children(launcher.pid).items() if "storm.py" not in line)
        policies = {
            os.sched_getscheduler(int(task.name)) for task in Path(f"/proc/{converter}/task").iterdir()
        }
        assert os.SCHED_IDLE in policies
        assert Path(f"/proc/{converter}/oom_score_adj").read_text() == "1000\n"
    said = launcher.communicate()[1]
    assert launcher.returncode == 7
    assert "ranges" in said
    report = tmp_path / "x.warplens"
    assert not list(report.rglob("*.during"))
    (raw,) = (report / "raw").iterdir()
    shutil.copytree(raw, tmp_path / raw.name)
    finish(tmp_path / raw.name, tmp_path / "again.warplens")
    found, wanted = tables(report), tables(tmp_path / "again.warplens")
    assert found["samples"].num_rows
    assert found["osrt"].num_rows
    for name, rows in wanted.items():
        assert found[name].equals(rows), name
    with pq.ParquetFile(next((report / "tables" / "nvtx_ranges").iterdir())) as file:
        assert (
            file.num_row_groups > 2
        )  # the outermost range has one of its own, before those that ended first


def test_processes_that_have_ended_are_converted(tmp_path: Path) -> None:
    options = ("--keep-raw", "-t", "osrt", "--sample=process-tree", "--osrt-file-access")
    with recorded(tmp_path, *options, storm=BUILD) as launcher:
        until(lambda: is_written(tmp_path, "osrt"), "part of the report", _PATIENCE_S)
    launcher.communicate()
    assert launcher.returncode == 7
    report = tmp_path / "x.warplens"
    (raw,) = (report / "raw").iterdir()
    shutil.copytree(raw, tmp_path / raw.name)
    finish(tmp_path / raw.name, tmp_path / "again.warplens")
    got, wanted = tables(report), tables(tmp_path / "again.warplens")
    assert got["processes"].num_rows > 100
    for name, rows in wanted.items():
        assert got[name].equals(rows), name


@pytest.mark.parametrize("victim", few(["launcher", "converter", "program"]))
def test_a_kill_of_any_process_loses_or_doubles_no_row(tmp_path: Path, victim: str) -> None:
    report = tmp_path / "x.warplens"
    with recorded(tmp_path) as launcher:
        until(lambda: is_given_back(tmp_path), "space of the spool", _PATIENCE_S)
        mine = children(launcher.pid)
        pids = {"launcher": launcher.pid} | {
            "program" if "storm.py" in line else "converter": pid for pid, line in mine.items()
        }
        os.kill(pids[victim], signal.SIGKILL)
    launcher.communicate()
    assert (
        launcher.returncode
        == {"converter": 7, "launcher": -signal.SIGKILL, "program": 128 + signal.SIGKILL}[victim]
    )
    if victim == "launcher":  # whoever writes the report goes on alone, and finishes it
        until(lambda: not (report / "pending.d").exists(), "the report", _PATIENCE_S)
    closed = int((tmp_path / "closed").read_bytes())
    ranges = info(report)["tables"]["nvtx_ranges"] - 12  # those around them, and before
    assert closed <= ranges <= closed + (BATCH if victim == "program" else 0)
    assert not list(report.rglob("*.during"))


@pytest.mark.require("memory-cgroup")
def test_a_small_container_has_its_report_written_during_the_run(tmp_path: Path) -> None:
    with memory_cgroup(256 << 20) as group:
        with recorded(tmp_path, wrap=group.wrap) as launcher:
            until(lambda: is_given_back(tmp_path), "space of the spool", _PATIENCE_S)
            (converter,) = (pid for pid, line in children(launcher.pid).items() if "storm.py" not in line)
            memory = dict(
                line.split(":", 1) for line in Path(f"/proc/{converter}/status").read_text().splitlines()
            )
            assert int(memory["RssAnon"].split()[0]) < 64 << 10  # KiB
        said = launcher.communicate()[1]
        assert (launcher.returncode, group.kills) == (7, 0), said
    assert (
        info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == int((tmp_path / "closed").read_bytes()) + 12
    )


def test_a_snapshot_has_what_was_taken_out_of_the_spool(tmp_path: Path) -> None:
    with recorded(tmp_path) as launcher:
        until(lambda: is_given_back(tmp_path, 0.4), "the space of half of the spool", _PATIENCE_S)
        (note,) = pending.listed(tmp_path / "x.warplens")
        before = int((tmp_path / "closed").read_bytes())
        manifest = snapshot(note, tmp_path / "now.warplens")
        assert (
            before
            <= manifest.tables["nvtx_ranges"]["rows"]
            <= int((tmp_path / "closed").read_bytes()) + BATCH + 13
        )
        until(lambda: is_given_back(tmp_path), "the space, once more", _PATIENCE_S)
    launcher.communicate()
    assert (
        info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == int((tmp_path / "closed").read_bytes()) + 12
    )


@pytest.mark.require("tmpfs")
@pytest.mark.parametrize("killed", few([False, True]))
def test_a_small_disk_holds_a_long_run(tmp_path: Path, tmpfs: Callable[[str], Path], killed: bool) -> None:
    """A killed converter leaves a spool that is larger than its disk: the report is made of a copy in memory."""
    disk = tmpfs("size=64m")

    def is_larger_than_the_disk() -> bool:
        taken = [path.stat() for path in disk.glob("*/*.spool*")]
        wait = sum(file.st_blocks for file in taken) * 512 > 44 << 20
        (tmp_path / "wait").touch() if wait else (tmp_path / "wait").unlink(missing_ok=True)
        return sum(file.st_size for file in taken) > 80 << 20

    with recorded(tmp_path, "--spool-dir", str(disk)) as launcher:
        until(is_larger_than_the_disk, "more than the disk holds at once", _PATIENCE_S)
        for pid, line in children(launcher.pid).items() if killed else ():
            if "storm.py" not in line:
                os.kill(pid, signal.SIGKILL)
    said = launcher.communicate()[1]
    assert launcher.returncode == 7
    assert (
        info(tmp_path / "x.warplens")["tables"]["nvtx_ranges"] == int((tmp_path / "closed").read_bytes()) + 12
    ), said
    assert not list(disk.iterdir())


def test_raw_files_are_kept_whole(tmp_path: Path) -> None:
    with recorded(tmp_path, "--keep-raw=true") as launcher:
        until(
            lambda: is_written(tmp_path) and written(tmp_path) > 20 << 20, "part of the report", _PATIENCE_S
        )
        assert allocated(tmp_path) >= written(tmp_path) - (1 << 20)
    launcher.communicate()
    assert not list((tmp_path / "x.warplens").rglob("*.packed"))


@pytest.mark.require("tmpfs")
def test_a_full_disk_costs_nothing_but_time(tmp_path: Path, tmpfs: Callable[[str], Path]) -> None:
    disk = tmpfs("size=1400k")
    with recorded(tmp_path, "--spool-dir", str(tmp_path / "spool"), report=str(disk / "x")) as launcher:
        until(lambda: is_written(disk), "part of the report", _PATIENCE_S)
        with open(disk / "filler", "wb") as filler:
            while True:
                try:
                    os.write(filler.fileno(), bytes(4096))
                except OSError:
                    break
        until(
            lambda: not is_written(disk), "the end of the one that writes", _PATIENCE_S
        )  # it has given up, and what it wrote is gone
    said = launcher.communicate()[1]
    assert launcher.returncode == 7
    (disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    closed = int((tmp_path / "closed").read_bytes())
    assert info(disk / "x.warplens")["tables"]["nvtx_ranges"] == closed + 12, said
