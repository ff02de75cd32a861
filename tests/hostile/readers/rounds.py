"""One round: an input is copied, damaged and read, and nothing beside it may change. `KINDS`: what there is, with how often each comes."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.hostile.readers import asking, canary, damage
from tests.hostile.readers.asking import Wrong
from tests.hostile.readers.templates import IMPORTS, REPORT, SPOOL

# Where a round may write beside its input: what commands are asked to write, and the caches of the user.
OWN = ("home", "cache", "tmp", "out", "out.perfetto-trace", "imported.warplens")


class Scene:
    """The folder of a round."""

    def __init__(self, templates: Path, folder: Path, chance: random.Random) -> None:
        self.templates, self.folder, self.chance = templates, folder, chance
        self.outside = folder / "outside"
        for name in ("home", "cache", "tmp"):
            (folder / name).mkdir(parents=True)
        canary.plant(self.outside)
        canary.plant(folder / "x.warplens.d")

    def copy(self, name: str) -> Path:
        """Return a copy of a template."""
        source, target = self.templates / name, self.folder / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target)
        return target

    def one(self, path: Path, pattern: str) -> Path:
        """Return one of the files below a folder."""
        return self.chance.choice(sorted(path.rglob(pattern)))


def manifest(scene: Scene) -> Path:
    """What the manifest says, how it is written, or what it is."""
    report = scene.copy(REPORT)
    path = scene.one(report / "manifest.d", "*.json")
    do = scene.chance.choice((damage.json_of, damage.json_of, damage.json_of, damage.bytes_of, None))
    if do is not None:
        do(path, scene.chance)
        return report
    which = scene.chance.choice(
        (path, path.with_name("two.json"), path.with_name("part-0"), path.parent, report / "pending.d")
    )
    damage.kind_of(which, scene.chance, scene.outside)
    return report


def tables(scene: Scene) -> Path:
    """What tables hold, how they are written, or what they are."""
    report = scene.copy(REPORT)
    (path,) = (report / "manifest.d").glob("*.json")
    said = json.loads(path.read_text())
    full = [name for name, entry in said["tables"].items() if entry["rows"]]
    for name in scene.chance.sample(full, scene.chance.choice((1, 1, 2, 5))):
        file = report / said["tables"][name]["file"]
        kind = scene.chance.random()
        if kind < 0.6:
            rows = damage.table_of(file, scene.chance)
            if scene.chance.random() < 0.95:
                said["tables"][name]["rows"] = rows
        elif kind < 0.85:
            damage.bytes_of(file, scene.chance)
        elif kind < 0.93:
            said["tables"][name] = said["tables"][scene.chance.choice(full)]
        else:
            damage.kind_of(scene.chance.choice((file, file.parent)), scene.chance, scene.outside)
    path.write_text(json.dumps(said))
    return report


def index(scene: Scene) -> Path:
    """The index that the timeline is drawn from."""
    report = scene.copy(REPORT)
    path = scene.one(report / "index", "*")
    if scene.chance.random() < 0.9:
        damage.bytes_of(path, scene.chance)
    else:
        damage.kind_of(scene.chance.choice((path, path.parent)), scene.chance, scene.outside)
    return report


def spool(scene: Scene) -> Path:
    """A recording that nobody has finished: its files, and the note that names it."""
    report = scene.copy(SPOOL)
    (note,) = (report / "pending.d").glob("*.json")
    data = json.loads(note.read_text())
    folder = report / "spool" / "one"
    note.write_text(json.dumps({**data, "spool": str(folder)}))
    path = scene.chance.choice(sorted(entry for entry in folder.iterdir() if entry.is_file()))
    kind = scene.chance.random()
    if kind < 0.55:
        damage.bytes_of(path, scene.chance)
    elif kind < 0.7:
        damage.json_of(scene.chance.choice((folder / "launch.json", note)), scene.chance)
    elif kind < 0.85:
        damage.kind_of(
            scene.chance.choice((path, note, folder, report / "spool", report / "manifest.d")),
            scene.chance,
            scene.outside,
        )
    else:  # it names what is not its own
        there = scene.chance.choice(
            (
                scene.outside,
                scene.outside / "spool" / "one",
                scene.folder,
                Path("/dev"),
                scene.outside / "link",
            )
        )
        name = scene.chance.choice(("one", "../one", "x-1-1", "..", "a/b"))
        (note.parent / "two.json").write_text(
            json.dumps({**data, "id": name, "spool": str(there), "ended": True})
        )
    return report


def imports(scene: Scene) -> Path:
    """Files of other tools."""
    path = scene.copy(scene.chance.choice(IMPORTS))
    if path.is_dir():
        file = scene.one(path, "*.parquet")
        kind = scene.chance.random()
        if kind < 0.5:
            damage.table_of(file, scene.chance)
        elif kind < 0.9:
            damage.bytes_of(file, scene.chance)
        else:
            damage.kind_of(file, scene.chance, scene.outside)
    elif path.name.endswith(".sqlite") and scene.chance.random() < 0.6:
        damage.sqlite_of(path, scene.chance)
    elif path.name.endswith(".json") and scene.chance.random() < 0.6:
        damage.json_of(path, scene.chance)
    elif scene.chance.random() < 0.97:
        damage.bytes_of(path, scene.chance)
    else:
        damage.kind_of(path, scene.chance, scene.outside)
    return path


def questions(scene: Scene) -> Path:
    """A good report, asked what nobody asks."""
    return scene.copy(REPORT)


Kind = Callable[[Scene], Path]
KINDS: dict[str, tuple[Kind, int, float]] = {  # how often, and how often the page is asked, not commands
    "manifest": (manifest, 4, 0.1),
    "tables": (tables, 8, 0.15),
    "index": (index, 2, 1.0),
    "spool": (spool, 4, 0.0),
    "imports": (imports, 8, 0.05),
    "questions": (questions, 2, 1.0),
}


def play(templates: Path, folder: Path, name: str, chance: random.Random) -> None:
    """Do one round in a folder of its own. Raises Wrong."""
    kind, _, asked = KINDS[name]
    scene = Scene(templates, folder, chance)
    path = kind(scene)
    before = _beside(folder, path)
    os.environ.update(
        HOME=str(folder / "home"),
        XDG_CACHE_HOME=str(folder / "cache"),
        TMPDIR=str(folder / "tmp"),
        COLUMNS="100",
    )
    os.chdir(scene.outside)
    try:
        if chance.random() < asked:
            asking.page(path, chance)
        else:
            asking.commands(path, chance, folder)
    finally:
        os.chdir("/")
    if changed := canary.differences(before, _beside(folder, path)):
        raise Wrong(f"{path.name} was read, and beside it {'; '.join(changed[:5])}")


def _beside(folder: Path, path: Path) -> dict[str, tuple[object, ...]]:
    own = {path.name, *OWN}
    return {
        name: facts for name, facts in canary.state(folder).items() if name.partition(os.sep)[0] not in own
    }


def choose(seed: int, number: int, kinds: list[str]) -> tuple[str, random.Random]:
    """Return the kind of a round, and its chance."""
    chance = random.Random(f"{seed}/{number}")
    return chance.choices(kinds, [KINDS[name][1] for name in kinds])[0], chance
