"""Reading a report that was received changes nothing: the system calls of a command say so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.readers import canary
from tests.support.page.viewing import PICTURE
from tests.support.programs.launching import COMMAND, environment
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.require("strace")
_CALLS = (
    "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,mknod,mknodat,"
    "truncate,chmod,fchmodat,chown,lchown,fchownat,utime,utimes,utimensat,futimesat,setxattr,lsetxattr,removexattr,lremovexattr,mount"
)
_LINE = re.compile(r"^(?:\d+ +)?(?P<call>\w+)\((?P<words>.*)\) += (?P<result>-?\d+)")
_PATH = re.compile(
    r'(?:AT_FDCWD<(?P<here>[^>]*)>|(?:\d+)<(?P<there>[^>]*)>|AT_FDCWD)?(?:, )?"(?P<path>(?:[^"\\]|\\.)*)"'
)
_WRITES = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
# What a terminal, a closed output and a thread's name are written to.
_NOBODYS = re.compile(r"/dev/(null|tty|pts/.*)|/proc/(self|\d+)/.*")


def changes(trace: str, own: Path, cwd: Path) -> Iterator[str]:
    """Yield the calls that change something, or open it so that it could be changed, outside of a folder."""
    for line in trace.replace(" <unfinished ...>\n", "").splitlines():
        match = _LINE.match(line)
        if match is None or (
            match["call"].startswith("open") and not any(word in match["words"] for word in _WRITES)
        ):
            continue
        paths = [
            cwd / (found["here"] or found["there"] or "") / found["path"]
            for found in _PATH.finditer(match["words"])
        ]
        if not all(own in (path, *path.parents) or _NOBODYS.fullmatch(str(path)) for path in paths):
            yield line


@pytest.fixture
def received(tmp_path: Path) -> Path:
    """A report of another user, or a copy of one: the user who reads it has no note of it."""
    folder = tmp_path / "received"
    timeline(tmp_path / "made.warplens", PICTURE)
    folder.mkdir()
    shutil.copytree(tmp_path / "made.warplens", folder / "run.warplens")
    canary.plant(folder / "outside")
    # Names that a sweep of snapshots, of drafts or of indexes could take for its own.
    for name in (
        "tables/processes/x-1.s1.parquet",
        "tables/kernels/x-1.s1.parquet.tmp",
        "manifest.d/x.tmp",
        "index/x-1.s1.lanes",
    ):
        (folder / "run.warplens" / name).parent.mkdir(exist_ok=True)
        (folder / "run.warplens" / name).write_text("of the sender")
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.lchown(path, 65534, 65534)
    return folder / "run.warplens"


@pytest.mark.parametrize(
    "words", [("info",), ("stats",), ("analyze",), ("timeline",), ("query", "SELECT * FROM kernels")]
)
def test_a_command_changes_nothing_outside_of_its_own_folders(
    words: tuple[str, ...], received: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    for name in ("home", "cache", "tmp"):
        (own / name).mkdir(parents=True)
    before = canary.state(received.parent)
    variables = {
        "HOME": own / "home",
        "XDG_CACHE_HOME": own / "cache",
        "TMPDIR": own / "tmp",
        "PYTHONDONTWRITEBYTECODE": 1,
    }
    done = subprocess.run(
        [
            "strace",
            "-f",
            "-y",
            "-qq",
            "-s",
            "4096",
            "-o",
            own / "trace",
            f"-etrace={_CALLS}",
            *COMMAND,
            words[0],
            received,
            *words[1:],
        ],
        cwd=received.parent / "outside",
        env=environment() | {name: str(value) for name, value in variables.items()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not canary.differences(before, canary.state(received.parent))
    trace = (own / "trace").read_text(errors="replace")
    assert trace.count("open") > 100
    assert list(changes(trace, own, received.parent / "outside")) == []


def test_system_calls_that_change_files_are_listed(tmp_path: Path) -> None:
    lines = """
17 openat(AT_FDCWD, "/home/x", O_RDONLY|O_CLOEXEC) = 3
17 openat(AT_FDCWD, "/own/x", O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3
17 openat(AT_FDCWD, "/dev/null", O_RDWR) = 3
17 unlink("/home/gone") = -1 ENOENT (No such file or directory)
17 openat(AT_FDCWD, "y", O_RDWR|O_CREAT, 0600) = 4
18 rename("/own/x", "/home/x") = 0
18 unlinkat(5</home/r>, "a \\"b\\"", 0) = 0
"""
    assert [line.split()[1] for line in changes(lines, Path("/own"), Path("/home"))] == [
        'unlink("/home/gone")',
        "openat(AT_FDCWD,",
        'rename("/own/x",',
        "unlinkat(5</home/r>,",
    ]
