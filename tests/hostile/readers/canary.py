"""What lies beside a report and is nobody's business: a tree of files with names that a reader could take for its own."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from warplens.testing import spool_writer as sw

_NAMES = (
    *(
        "thesis.txt",
        "control",
        "processes.log",
        "clocks.jsonl",
        "launch.json",
        "calibration-1",
        "token",
        "host-11-5.spool",
        "lock",
    ),
    *(
        "x-1.s1.parquet",
        "x-1.s1.parquet.tmp",
        "host-0.parquet",
        "host-0.s3.parquet",
        "x-1.s1.lanes",
        "one.json",
        "part-0",
        "manifest.json",
    ),
)


def plant(folder: Path) -> None:
    """Make the tree."""
    for inside in (
        "",
        "sub",
        "spool/one",
        "pending.d",
        "manifest.d",
        "tables/processes",
        "index",
        "0123456789abcdef/x.warplens",
    ):
        (folder / inside).mkdir(parents=True, exist_ok=True)
        for name in _NAMES:
            (folder / inside / name).write_text(f"{inside}/{name}: all of it")
    (folder / "real.spool").write_bytes(sw.spool([sw.strings({1: "x"})]))
    (folder / "link").symlink_to("thesis.txt")


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return what can be seen of each file: what it is, its mode, size, times and contents."""
    found: dict[str, tuple[object, ...]] = {}
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            facts = os.lstat(path)
            contents = ""
            if stat.S_ISREG(facts.st_mode):
                with open(path, "rb") as file:
                    contents = hashlib.sha256(file.read()).hexdigest()
            elif stat.S_ISLNK(facts.st_mode):
                contents = str(Path(path).readlink())
            found[os.path.relpath(path, folder)] = (
                facts.st_ino,
                facts.st_mode,
                facts.st_uid,
                facts.st_size,
                facts.st_mtime_ns,
                contents,
            )
    return found


def differences(before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]]) -> list[str]:
    """Return what was removed, added or changed."""
    gone = [f"{path} is gone" for path in before if path not in after]
    new = [f"{path} is new" for path in after if path not in before]
    return (
        gone
        + new
        + [f"{path} was changed" for path in before if path in after and before[path] != after[path]]
    )
