"""The filesystem of a path, from the table of mounts or else from statfs(2)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from warplens.recording.spool import filesystems
from warplens.recording.spool.filesystems import filesystem_of, is_refused, is_slow

MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:30 / /home rw - nfs4 server:/home rw
24 22 0:31 / /home/me/fast\\040disk rw,noatime shared:1 - xfs /dev/sdb rw
25 22 0:32 / /over rw - overlay overlay rw
26 22 0:33 / /over rw - tmpfs tmpfs rw
broken line
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("path", "filesystem"),
    [
        ("/nowhere/at/all", "ext4"),
        ("/homes", "ext4"),
        ("/home/me/run", "nfs4"),
        ("/home/me/fast disk/run", "xfs"),
        ("/over/x", "tmpfs"),
    ],
)
def test_the_innermost_mount_counts(
    mounts: Path, path: str, filesystem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # none of these exists here: look at them as they are written
    monkeypatch.setattr(Path, "exists", lambda self: True)
    root = Path("/").stat()
    monkeypatch.setattr(Path, "stat", lambda self: root)
    assert filesystem_of(Path(path), mounts) == filesystem


@pytest.mark.parametrize("text", ["", "22 1 0:1 / /elsewhere rw - tmpfs tmpfs rw\n"])
def test_without_the_table_of_mounts_the_kernel_is_asked(text: str, tmp_path: Path) -> None:
    """As in a chroot, whose root is in no table."""
    table = tmp_path / "mountinfo"
    table.write_text(text)
    named = subprocess.run(
        ["stat", "-f", "-c", "%t", tmp_path], capture_output=True, text=True, check=True
    ).stdout
    assert filesystem_of(tmp_path, table) == filesystems._MAGIC[int(named, 16)]
    assert filesystem_of(tmp_path, tmp_path / "missing") == filesystem_of(tmp_path, table)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no /dev/shm")
def test_memory_is_tmpfs(tmp_path: Path) -> None:
    assert filesystem_of(Path("/dev/shm/not/there"), tmp_path / "missing") == "tmpfs"


# What statfs(2) says of filesystems that a test machine seldom has, by the kernel's magic.h and the sources of OpenZFS.
@pytest.mark.parametrize(
    ("magic", "name"),
    [
        (0x2FC12FC1, "zfs"),
        (0x01021994, "tmpfs"),
        (0x794C7630, "overlay"),
        (0x6969, "nfs"),
        (0x9123683E, "btrfs"),
        (0xEF53, "ext4"),
        (0x1, "unknown"),
    ],
)
def test_known_file_systems_have_names(
    magic: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystems, "_magic", lambda path: magic)
    assert filesystem_of(tmp_path, tmp_path / "missing") == name


def test_nfs_alone_is_refused() -> None:
    names = ["nfs", "nfs4", "zfs", "tmpfs", "overlay", "lustre", "cifs", "fuse", "ext4", "unknown"]
    assert [name for name in names if is_refused(name)] == ["nfs", "nfs4"]


def test_an_unknown_file_system_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "_magic", lambda path: 0)
    assert filesystem_of(tmp_path, tmp_path / "missing") == "unknown"


def test_only_what_is_known_to_be_slow_is_slow() -> None:
    slow = ["nfs", "nfs4", "cifs", "9p", "fuse", "fuse.sshfs", "lustre", "ceph", "gpfs"]
    assert [
        name
        for name in (*slow, "ext4", "zfs", "f2fs", "bcachefs", "btrfs", "overlay", "unknown", "fusectl")
        if is_slow(name)
    ] == slow
