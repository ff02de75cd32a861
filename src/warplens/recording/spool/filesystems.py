"""Finds the filesystem of a path, and whether it is known to be slow for a spool."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

UNKNOWN = "unknown"
# What statfs(2) calls them, by the kernel's uapi/linux/magic.h and the sources of those that are not part of the kernel.
_MAGIC = {
    0x01021994: "tmpfs",
    0x01021997: "9p",
    0x01161970: "gfs2",
    0x0BD00BD0: "lustre",
    0x00C36400: "ceph",
    0x19830326: "beegfs",
    0x2FC12FC1: "zfs",
    0x3153464A: "jfs",
    0x47504653: "gpfs",
    0x5346414F: "afs",
    0x517B: "smb3",
    0x58465342: "xfs",
    0x65735546: "fuse",
    0x6969: "nfs",
    0x7461636F: "ocfs2",
    0x73757245: "coda",
    0x786F4256: "vboxsf",
    0x794C7630: "overlay",
    0x858458F6: "ramfs",
    0x9123683E: "btrfs",
    0xCA451A4E: "bcachefs",
    0xEF53: "ext4",
    0xF2F52010: "f2fs",
    0xFE534D42: "smb3",
    0xFF534D42: "cifs",
}
# Their pages are a server's or another process's: each write may wait for it.
_SLOW = frozenset(
    {"9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "glusterfs", "gpfs", "lustre"}
    | {"ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs"}
)


_REFUSED = frozenset({"nfs", "nfs4"})


def is_refused(filesystem: str) -> bool:
    """Say whether a filesystem of this type must not hold a spool.

    A server that is gone would stop the program itself.
    """
    return filesystem in _REFUSED


def is_slow(filesystem: str) -> bool:
    """Tell whether a spool is slow on a filesystem of this type.

    Of a type that nobody knows it is not assumed.
    """
    return filesystem in _SLOW or filesystem.startswith("fuse.")


def filesystem_of(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """Return the type of the filesystem that holds `path` (or its first existing parent), e.g. `ext4`.

    The table of mounts names it best. In a chroot the root is not in that table; then statfs(2) answers.
    """
    path = Path(os.path.realpath(path))
    while not path.exists() and path != path.parent:
        path = path.parent
    return _mounted(path, mountinfo) or _MAGIC.get(_magic(path), UNKNOWN)


def _mounted(path: Path, mountinfo: Path) -> str | None:
    try:
        device = path.stat().st_dev
        with mountinfo.open(encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    best, found, same_device = -1, None, False
    for line in lines:
        fields, _, rest = line.partition(" - ")
        parts = fields.split()
        if len(parts) < 5 or not rest:
            continue
        point = _unescape(parts[4])
        if point != "/" and str(path) != point and not str(path).startswith(point + "/"):
            continue
        # the longest mount point wins, of several mounts on one point the one whose device the path has, else the last
        same = parts[2] == f"{os.major(device)}:{os.minor(device)}"
        if len(point) > best or (len(point) == best and (same or not same_device)):
            best, found, same_device = len(point), rest.split()[0], same
    return found


def _unescape(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _magic(path: Path) -> int:
    """Return `f_type` of statfs(2), which os.statvfs leaves out; 0 if it cannot be had."""
    answer = (ctypes.c_ulong * 64)()  # twice what struct statfs takes; f_type comes first
    try:
        statfs = ctypes.CDLL(None).statfs
    except (AttributeError, OSError):  # no C library of our kind
        return 0
    return answer[0] & 0xFFFFFFFF if statfs(os.fsencode(path), answer) == 0 else 0
