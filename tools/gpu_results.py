"""Stores the results of the steps of `make gpu` in one archive and summarises them on one screen."""

from __future__ import annotations

import json
import tarfile
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

LIMIT = 15 << 20  # bytes of an archive
LARGE = 20  # of what is that many times larger, no compression makes an archive
LINES = 24  # of the summary, for tests that failed
WIDTH = 150


@dataclass(frozen=True)
class Ended:
    """How a step ended (`ok`, `failed`, `skipped`, `stopped after … s`, or why it was not begun), the seconds it took, its last words."""

    how: str
    seconds: float = 0.0
    said: str = ""


class Results:
    """What is known of the steps on the sources `tree`, from this call and from earlier ones, in `ended.json` of a folder."""

    def __init__(self, folder: Path, tree: str, earlier: Iterable[Path] = ()) -> None:
        self.folder, self.tree = folder, tree
        self.steps: dict[str, Ended] = {}
        for path in (*earlier, folder / "ended.json"):
            self.steps.update(_read(path, tree))
        self.before = frozenset(name for name, ended in self.steps.items() if ended.how == "ok")
        self.now: set[str] = set()

    def put(self, name: str, ended: Ended) -> None:
        """Keep how a step ended, at once: the next one may take the machine with it."""
        self.steps[name] = ended
        self.now.add(name)
        text = json.dumps(
            {"tree": self.tree, "steps": {name: asdict(ended) for name, ended in self.steps.items()}},
            indent=1,
        )
        (self.folder / "ended.json").write_text(f"{text}\n", encoding="utf-8")

    def summary(self, names: Sequence[str]) -> list[str]:
        """A line for each of these steps, and below it the tests of it that failed, each with its assertion."""
        lines, room = [], LINES
        for name in names:
            ended = self.steps[name]
            old = "" if name in self.now else " (in an earlier call)"
            took = f", {ended.seconds:.0f} s" if ended.seconds else ""
            lines.append(f"{name:28} {ended.how}{took}{old}  {ended.said}"[:WIDTH].rstrip())
            bad = failures(self.folder / f"{name}.xml") if ended.how not in ("ok", "skipped") else []
            lines += [f"    {test}: {what}"[:WIDTH] for test, what in bad[:room]]
            lines += [f"    and {len(bad) - room} more"] if len(bad) > room else []
            room = max(room - len(bad), 0)
        return lines


def _read(path: Path, tree: str) -> dict[str, Ended]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return (
            {name: Ended(**ended) for name, ended in found["steps"].items()} if found["tree"] == tree else {}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _cases(xml: Path) -> list[ElementTree.Element]:
    try:
        return list(ElementTree.parse(xml).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


def failures(xml: Path) -> list[tuple[str, str]]:
    """The tests that failed, each with the first line of why, from what pytest wrote.

    None where it wrote nothing.
    """
    return [
        (case.get("name", ""), next(iter((bad.get("message") or bad.text or "").strip().splitlines()), ""))
        for case in _cases(xml)
        for bad in case
        if bad.tag in ("failure", "error")
    ]


def only_skipped(xml: Path) -> bool:
    """Whether pytest wrote of tests, and none of them ran."""
    cases = _cases(xml)
    return bool(cases) and all(case.find("skipped") is not None for case in cases)


def pack(folder: Path, archive: Path, limit: int = LIMIT) -> list[str]:
    """Pack a folder into a .tgz of at most `limit` bytes.

    The largest files are left out first, and these are returned.
    """
    part = archive.with_name(
        f"{archive.name}.part"
    )  # an archive is whole, also where we are killed while we write the next one
    own = {archive.resolve(), part.resolve()}
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.resolve() not in own
    ]
    sizes = {path: path.stat().st_size for path in files}
    by_size = sorted(files, key=lambda path: sizes[path])
    left: list[Path] = []
    while (
        by_size and sum(sizes[path] for path in by_size) > LARGE * limit
    ):  # compressing all of them would take too long
        left.append(by_size.pop())
    packed = {path: len(zlib.compress(path.read_bytes(), 1)) + 1024 for path in by_size}
    archive.parent.mkdir(parents=True, exist_ok=True)
    while True:
        while packed and sum(packed.values()) > limit:
            largest = max(packed, key=lambda path: packed[path])
            left.append(largest)
            del packed[largest]
        with tarfile.open(part, "w:gz", compresslevel=6) as file:
            for path in packed:
                file.add(path, f"results/{path.relative_to(folder)}")
        if part.stat().st_size <= limit or not packed:
            part.replace(archive)
            return [f"{path.relative_to(folder)} ({sizes[path] / 2**20:.1f} MiB)" for path in left]
        largest = max(packed, key=lambda path: packed[path])
        left.append(largest)
        del packed[largest]
