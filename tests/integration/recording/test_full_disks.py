"""Disks without space, without inodes, without quota, and those that write elsewhere: the program continues, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.programs.capturing import Capture
from tests.support.programs.launching import COMMAND, environment, info, until, warplens
from warplens.report import open as open_report
from warplens.spool.directory import spool_files
from warplens.spool.reader import SpoolFile

pytestmark = pytest.mark.require("native", "nvtx")
Mount = Callable[..., Path]
Target = Callable[..., Path]
BTRFS = ("mkfs.btrfs", "-q")
FULL = "no space left while writing"
NO_INODES = "the disk takes no more files (all its inodes are in use)"
USED_UP = {
    "space": "the disk is full",
    "inodes": "all its inodes are in use",
    "quota": "the disk quota is used up",
}

# Uses up what there is of DISK: `fill(False)` all bytes, `fill(True)` all inodes.
FILL = """
import os, sys, time
from pathlib import Path
from warplens import nvtx

def fill(inodes):
    folder = Path(sys.argv[1]) / "filler"
    folder.mkdir()
    number = 0
    try:
        while inodes:
            (folder / str(number)).touch()
            number += 1
        with open(folder / "bytes", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 14))
    except OSError:
        pass
"""


def program(folder: Path, text: str) -> list[str]:
    """Write a program that can fill a disk."""
    path = folder / "program.py"
    path.write_text(FILL + textwrap.dedent(text))
    return [sys.executable, str(path)]


def empty(disk: Path) -> None:
    """There is space again."""
    for path in (disk / "filler").iterdir():
        path.unlink()
    (disk / "filler").rmdir()


def quota(folder: Path) -> Path:
    """Make a subvolume that may take 6 MiB."""
    for words in (
        ["quota", "enable", folder],
        ["subvolume", "create", folder / "of us"],
        ["qgroup", "limit", "6M", folder / "of us"],
    ):
        subprocess.run(["btrfs", *map(str, words)], check=True, capture_output=True)
    return folder / "of us"


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Path:
    """A disk on which something else than space may be used up."""
    kind = request.param
    if kind == "tmpfs space":
        return Path(request.getfixturevalue("tmpfs")("size=48m"))
    if kind == "tmpfs inodes":
        return Path(request.getfixturevalue("tmpfs")("size=200m,nr_inodes=400"))
    if kind == "ext4 inodes":
        return Path(request.getfixturevalue("loop_disk")("mkfs.ext4", "-q", "-N", "400"))
    return quota(request.getfixturevalue("loop_disk")(*BTRFS))


KINDS = [
    pytest.param("tmpfs space", marks=pytest.mark.require("tmpfs")),
    pytest.param("tmpfs inodes", marks=pytest.mark.require("tmpfs")),
    pytest.param("ext4 inodes", marks=pytest.mark.require("loop-ext4")),
    pytest.param("btrfs quota", marks=pytest.mark.require("loop-btrfs")),
]


@pytest.mark.parametrize("disk", KINDS, indirect=True, ids=lambda kind: kind.replace(" ", "-"))
def test_a_report_that_cannot_be_written_is_finished_later(
    disk: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The program uses up what there is while it is recorded; the launcher says so in one line, and how to finish."""
    kind = request.node.callspec.id.split("-")[-1]
    words = program(
        tmp_path,
        f"""
        for number in range(1000):
            nvtx.mark("before")
        time.sleep(0.5)  # where no space can be reserved, the last 0.1 s may be lost
        fill({kind == "inodes"})
        nvtx.mark("after")
        print("ran")
        sys.exit(7)
        """,
    )
    done = warplens("profile", "-q", "-o", disk / "x", *words, disk, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "ran\n"), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "finishes it" in line]
    assert line.startswith("warplens: error: no space left while writing")
    assert USED_UP[kind] in line
    assert "Traceback" not in done.stderr
    again = warplens("info", disk / "x", cwd=tmp_path)
    assert (again.returncode, FULL in again.stderr) == (1, True)
    empty(disk)
    facts = info(disk / "x.warplens")
    assert facts["tables"]["nvtx_marks"] in ((1000, 1001) if kind == "quota" else (1001,))
    assert not list(disk.rglob("*.spool"))
    assert not list(disk.rglob("*.tmp*"))
    if kind != "quota":  # there the last facts of the launcher had no room, which it reports
        assert facts["parts"][0]["exit_status"] == 7


@pytest.mark.require("tmpfs")
def test_processes_for_whose_spools_there_are_no_inodes(tmp_path: Path, tmpfs: Mount) -> None:
    disk = tmpfs("size=200m,nr_inodes=60")
    words = program(
        tmp_path,
        """
        nvtx.mark("parent")
        fill(True)
        if os.fork() == 0:
            nvtx.mark("child")
            os._exit(0)
        os.wait()
        nvtx.mark("parent")
        """,
    )
    done = warplens("profile", "-o", tmp_path / "x", "--spool-dir", disk, *words, disk, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        "could not record, because no spool could be opened: the disk takes no more files (all its "
        "inodes are in use)" in " ".join(done.stderr.split())
    )
    assert info(tmp_path / "x.warplens")["tables"]["nvtx_marks"] == 2


@pytest.mark.require("tmpfs")
def test_a_disk_without_inodes_is_told_from_the_first(tmp_path: Path, tmpfs: Mount) -> None:
    disk = tmpfs("size=200m,nr_inodes=3")
    for name in "ab":
        (disk / name).touch()
    done = warplens(
        "profile", "-o", tmp_path / "x", "--spool-dir", disk, "sh", "-c", "echo ran; exit 7", cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (7, "ran\n")
    assert done.stderr == f"warplens: NOTHING IS RECORDED: Cannot write to --spool-dir {disk}: {NO_INODES}.\n"


# A control file whose pages may need space, on a disk that has none: a hole of a sparse file.
HOLE = """
import ctypes, sys
from pathlib import Path
from warplens.recording.agent.library import load_agent
from warplens.recording.agent.control_file import ControlPage
agent, path = load_agent(), Path(sys.argv[1]) / "control"
control = ControlPage(path)
assert not agent.charge(control.address, 100)
agent.charge(control.address, -100)
try:
    agent.open_window(control.address, 1)
except OSError as error:
    print(error.errno)
assert agent.close_window(control.address, 1) == 0
control.arm(1)
control.disarm()
print("alive")
"""


@pytest.mark.require("loop-ext4")
def test_a_control_file_that_cannot_be_written_ends_nobody(loop_disk: Mount) -> None:
    disk = loop_disk("mkfs.ext4", "-q", "-m", "0", size=16 << 20)
    with (disk / "control").open("wb") as file:
        file.truncate(1 << 20)
    fill(disk)
    done = subprocess.run(
        [sys.executable, "-c", HOLE, disk], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "28\nalive\n"), done.stderr


@pytest.mark.require("loop-btrfs", "gcc")
@pytest.mark.parametrize("overlay", [False, True], ids=["btrfs", "overlay"])
def test_a_full_disk_that_writes_elsewhere_ends_neither_program_nor_launcher(
    overlay: bool, tmp_path: Path, loop_disk: Mount, target: Target
) -> None:
    """Whatever of it is mapped would raise SIGBUS at the next write."""
    disk = loop_disk(*BTRFS)
    with overlaid(disk, tmp_path) if overlay else contextlib.nullcontext(disk) as spool:
        words = [
            *COMMAND,
            "profile",
            "--light",
            "-q",
            "-o",
            "x",
            "--spool-dir",
            str(spool),
            str(target("nvtx_storm")),
            "4",
            "600000",
            "steady",
        ]
        with subprocess.Popen(
            words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            until(
                lambda: sum(path.stat().st_blocks for path in disk.rglob("*.spool")) > 4096,
                "some MiB of the spool",
            )
            fill(disk)
            out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (0, "done\n"), err
    with open_report(tmp_path / "x.warplens") as report:
        assert report.tables["nvtx_ranges"] > 1000
        assert "not-reserved" in report.table("diagnostics").column("code").to_pylist()


def fill(disk: Path) -> None:
    """Use up all of the space."""
    for size in (1 << 16, 1 << 10):
        with contextlib.suppress(OSError), (disk / f"filler {size}").open("wb", buffering=0) as file:
            while file.write(bytes(size)):
                pass
        os.sync()


@contextlib.contextmanager
def overlaid(disk: Path, folder: Path) -> Iterator[Path]:
    """Mount an overlay whose files lie on `disk`."""
    for path in (disk / "upper", disk / "work", folder / "lower", folder / "over"):
        path.mkdir()
    options = f"lowerdir={folder / 'lower'},upperdir={disk / 'upper'},workdir={disk / 'work'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, folder / "over"], check=True)
    try:
        yield folder / "over"
    finally:
        subprocess.run(["umount", "--lazy", folder / "over"], check=True)


@pytest.mark.require("tmpfs", "gcc")
@pytest.mark.parametrize("below", ["tmpfs", pytest.param("ext4", marks=pytest.mark.require("loop-ext4"))])
def test_an_overlay_promises_what_the_disk_below_it_does(
    below: str, tmp_path: Path, tmpfs: Mount, loop_disk: Mount, target: Target
) -> None:
    disk = tmpfs("size=64m") if below == "tmpfs" else loop_disk("mkfs.ext4", "-q")
    with overlaid(disk, tmp_path) as spool:
        capture = Capture(spool / "spool", open=True)
        done = subprocess.run(
            [target("nvtx_storm"), "2", "1000"],
            env=capture.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "done\n")
        (path,) = spool_files(capture.spool)
        with SpoolFile(path) as file:
            assert (file.head.buffered, file.events.counts().ranges) == (False, 2 * 1001)
        capture.control.close()
