"""Names the files of a spool directory that warplens may move and remove.

A received report may name any directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from warplens.disk.files import remove_folder
from warplens.disk.folder import Folder
from warplens.handover import links, untrusted
from warplens.handover.naming import PACKED, PENDING, TOKEN

# As in format.h; `warplens.spool` knows more about them, and needs NumPy.
_SPOOL_MAGIC = b"WLSPOOL1"
_CONTROL_MAGIC = b"WLCNTRL1"


def files(spool: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a spool directory that an agent or a launcher writes there, and no others.

    None where it lies outside a report and no file in it is a control page or a spool: a note may name any directory. Those
    that show whose directory it is come last, so that an interrupted removal can go on.
    """
    folder = Path(spool)
    if not links.is_folder(folder):
        return []
    known = (
        "control",
        "processes.log",
        "clocks.jsonl",
        "launch.json",
        "gpu_metrics.jsonl",
        "host_metrics.jsonl",
        "python_functions.txt",
        TOKEN,
    )
    # a launcher that was killed while it measured what recording costs has left a second spool
    measured = "calibration-"
    names = sorted(
        entry.name
        for entry in os.scandir(folder)
        if (
            entry.name.endswith((".spool", PACKED))
            or entry.name.partition(".tmp")[0] in known
            or entry.name.startswith(measured)
        )
        and entry.is_file(follow_symlinks=False)
    )
    paths = [folder / name for name in names]
    in_a_report = folder.parent.name == "spool" and (folder.parent.parent / PENDING).is_dir()
    token = [path for path in paths if path.name == TOKEN]
    proven = [path for path in paths if _has_magic(path)]
    last = {path.name for path in (*proven, *token)}  # there may be 10^4 of them
    others = [path for path in paths if path.name not in last]
    return others + proven + token if in_a_report or proven or not others else []


def remove(spool: str | os.PathLike[str]) -> None:
    """Remove the files of a spool, and its directory unless other files are in it.

    A note may name any directory. OSError.
    """
    if ours := files(spool):
        with Folder(spool, follow=False) as folder:
            for path in ours:
                folder.remove(path.name)
    remove_folder(Path(spool))


def _has_magic(path: Path) -> bool:
    try:
        return untrusted.read(path, 8) == (_CONTROL_MAGIC if path.name == "control" else _SPOOL_MAGIC)
    except OSError:
        return False
