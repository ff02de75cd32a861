"""tools/release_check.py: a small release that passes, and one mistake at a time that each check finds."""

from __future__ import annotations

import hashlib
import importlib
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://code.test/them/warplens"
MACHINES = {"x86_64": 62, "aarch64": 183}
VERSIONS = range(10, 16)
OLD_NAME = "warp" + "line"
FILES = {
    ".gitignore": "/dist/\n/build/\n_bundle/\n",
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-12-01\n\n- All of it.\n",
    "LICENSE": "one\n",
    "LICENSE-THIRD-PARTY": "two\n",
    "native/device/part.cuh": "",
    "pyproject.toml": f'[[tool.dynamic-metadata]]\nrepository = "{REPOSITORY}"\n',
    "src/warplens/__init__.py": "",
    "src/warplens/_version.py": '__version__ = "1.2.0"\n',
    "src/warplens/py.typed": "",
    "src/warplens/viewer/_bundle/index.html": "<html></html>",
}

pytestmark = pytest.mark.require("git")


def metadata(*, version: str = "1.2.0", url: str = REPOSITORY, body: str = "", more: str = "") -> str:
    """The metadata of a release, with what a test changes."""
    links = "".join(
        f"Project-URL: {name}, {url}/x\n" for name in ("Source", "Documentation", "Changelog", "Issues")
    )
    pythons = "".join(f"Classifier: Programming Language :: Python :: 3.{minor}\n" for minor in VERSIONS)
    body = body or f"# warplens\n\n![seen]({REPOSITORY}/raw/v1.2.0/a.png) and [said]({REPOSITORY}/x)\n"
    head = f"Metadata-Version: 2.4\nName: warplens\nVersion: {version}\nLicense-Expression: MIT\n"
    licences = "License-File: LICENSE\nLicense-File: LICENSE-THIRD-PARTY\n"
    return f"{head}{licences}{links}{pythons}{more}Description-Content-Type: text/markdown\n\n{body}"


class Tree:
    """A checkout with a release in dist/."""

    def __init__(self, root: Path, tool: ModuleType) -> None:
        self.root, self.tool = root, tool
        self.metadata = metadata()
        for name, text in FILES.items():
            self.write(name, text)
        self.git("init", "--quiet")
        self.commit()
        self.build()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=Test", "-c", "user.email=test@code.test")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "state")

    def build(self, edit: Callable[[dict[str, bytes]], object] = lambda _: None) -> None:
        """Write dist/ and what `make wheels` writes down; `edit` changes the contents of each wheel."""
        dist = self.root / "dist"
        dist.mkdir(exist_ok=True)
        (self.root / "PKG-INFO").write_text(self.metadata)
        with tarfile.open(dist / "warplens-1.2.0.tar.gz", "w:gz") as archive:
            for name in (*FILES, "PKG-INFO"):
                archive.add(self.root / name, f"warplens-1.2.0/{name}")
        (self.root / "PKG-INFO").unlink()
        for machine, number in MACHINES.items():
            elf = b"\x7fELF" + bytes(14) + number.to_bytes(2, "little")
            libraries = [
                f"_lib/libwarplens_{name}.so" for name in ("agent", "reader", "preload", "preload_cpu")
            ]
            libraries += [f"nvtx/_binding.cpython-3{minor}-{machine}-linux-gnu.so" for minor in VERSIONS]
            plain = [
                "__init__.py",
                "_version.py",
                "py.typed",
                "viewer/_bundle/index.html",
                "_lib/include/part.cuh",
            ]
            info = "warplens-1.2.0.dist-info"
            contents = {f"warplens/{name}": b"" for name in plain} | {
                f"warplens/{name}": elf for name in libraries
            }
            contents |= {f"{info}/licenses/{name}": b"" for name in ("LICENSE", "LICENSE-THIRD-PARTY")}
            contents |= {
                f"{info}/METADATA": self.metadata.encode(),
                f"{info}/WHEEL": b"Wheel-Version: 1.0\n",
                f"{info}/RECORD": b"",
            }
            edit(contents)
            with zipfile.ZipFile(
                dist / f"warplens-1.2.0-py3-none-manylinux_2_28_{machine}.whl", "w"
            ) as packed:
                for name, content in contents.items():
                    packed.writestr(name, content)
        self.note()

    def note(self) -> None:
        files = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (self.root / "dist").iterdir()
        }
        wheels = {name: {"bindings": [], "worked": ["3.11"]} for name in files if name.endswith(".whl")}
        made = {"commit": self.git("rev-parse", "HEAD"), "files": files, "wheels": wheels}
        self.write("build/wheels/made.json", json.dumps(made))

    def complaints(self) -> dict[str, str]:
        """What each check that complains says."""
        release = self.tool.Release(self.root)
        said = {check.__name__: "\n".join(check(release)) for check in self.tool.CHECKS}
        return {name: text for name, text in said.items() if text}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return Tree(tmp_path, importlib.import_module("release_check"))


def _rebuilt(**changes: str) -> Callable[[Tree], None]:
    def mistake(tree: Tree) -> None:
        tree.metadata = metadata(**changes)
        tree.build()

    return mistake


def _edited(edit: Callable[[dict[str, bytes]], object]) -> Callable[[Tree], None]:
    return lambda tree: tree.build(edit)


def _committed(name: str, text: str) -> Callable[[Tree], None]:
    def mistake(tree: Tree) -> None:
        tree.write(name, text)
        tree.commit()
        tree.build()

    return mistake


def _tagged_before(tree: Tree) -> None:
    tree.git("tag", "v1.2.0")
    _committed("LICENSE", "other\n")(tree)


def _another_file(tree: Tree) -> None:
    tree.write("dist/warplens-1.1.0.tar.gz", "")
    tree.note()
    (tree.root / "dist" / "warplens-1.1.0.tar.gz").rename(tree.root / "dist" / "warplens-1.1.0.zip")


def _untried(tree: Tree) -> None:
    made = json.loads((tree.root / "build/wheels/made.json").read_text())
    for wheel in made["wheels"].values():
        wheel["worked"] = []
    tree.write("build/wheels/made.json", json.dumps(made))


BINDING = "warplens/nvtx/_binding.cpython-314-x86_64-linux-gnu.so"
MISTAKES: dict[str, tuple[Callable[[Tree], object], str, str]] = {
    "a version that is not final": (
        _committed("src/warplens/_version.py", '__version__ = "1.2.0.dev1"\n'), "the_version_is_final", "X.Y.Z"),
    "no section of the version": (
        _committed("CHANGELOG.md", "## 1.1.0 - 2026-01-01\n"), "the_changelog_has_the_version", "## 1.2.0 - YYYY-MM-DD"),
    "an entry under Unreleased": (
        _committed("CHANGELOG.md", "## Unreleased\n- New.\n## 1.2.0 - 2026-12-01\n"), "the_changelog_has_the_version", "Unreleased"),
    "a change that is not committed": (lambda tree: tree.write("LICENSE", "other\n"), "the_tree_is_clean", "M LICENSE"),
    "a tag on another commit": (_tagged_before, "the_tag_is_free", "v1.2.0"),
    "no repository": (_committed("pyproject.toml", 'repository = ""\n'), "the_repository_is_known", "enter the address"),
    "a repository that stands for one": (
        _committed("pyproject.toml", 'repository = "https://example.org/warplens"\n'), "the_repository_is_known", "enter the address"),
    "links to another repository": (_rebuilt(url="https://code.test/other"), "the_repository_is_known", "https://code.test/other"),
    "nothing built": (lambda tree: (tree.root / "build/wheels/made.json").unlink(), "dist_is_what_was_tried", "run it"),
    "built of another commit": (lambda tree: tree.git("commit", "--quiet", "--allow-empty", "-m", "x"), "dist_is_what_was_tried", "commit"),
    "a file that was not built": (_another_file, "dist_is_what_was_tried", "other files"),
    "a wheel that nothing tried": (_untried, "dist_is_what_was_tried", "could not try"),
    "a file of another version": (_another_file, "dist_is_complete", "warplens-1.1.0"),
    "a wheel that is missing": (
        lambda tree: next((tree.root / "dist").glob("*aarch64.whl")).unlink(), "dist_is_complete", "lacks warplens-1.2.0-py3-none-many"),
    "a binding that is missing": (_edited(lambda wheel: wheel.pop(BINDING, None)), "dist_is_complete", f"lacks {BINDING}"),
    "a module that is missing": (_edited(lambda wheel: wheel.pop("warplens/__init__.py")), "dist_is_complete", "lacks warplens/__init__"),
    "a page that is missing": (
        _edited(lambda wheel: wheel.pop("warplens/viewer/_bundle/index.html")), "dist_is_complete", "_bundle/index.html"),
    "a licence that is missing": (
        _edited(lambda wheel: wheel.pop("warplens-1.2.0.dist-info/licenses/LICENSE")), "dist_is_complete", "licenses/LICENSE"),
    "a library of another machine": (
        _edited(lambda wheel: wheel.update({"warplens/_lib/libwarplens_reader.so": bytes(20)})), "dist_is_complete", "not made for x86_64"),
    "a file that does not belong": (_edited(lambda wheel: wheel.update({"tests/x.py": b""})), "dist_is_complete", "does not belong"),
    "the former name": (
        _edited(lambda wheel: wheel.update({"warplens/py.typed": OLD_NAME.encode()})), "dist_is_complete", "former name"),
    "a source that is not in the sdist": (_committed("native/new.cpp", ""), "the_sdist_has_the_sources", "lacks native/new.cpp"),
    "the former name in the sdist": (_committed("LICENSE", OLD_NAME), "the_sdist_has_the_sources", "LICENSE holds the former name"),
    "a description of no known type": (
        _rebuilt(more="Description-Content-Type: text/x-unknown\n"), "twine_accepts_it", "twine check"),
    "metadata of another version": (_rebuilt(version="1.1.0"), "the_metadata_is_whole", "1.1.0"),
    "a classifier that PyPI does not know": (_rebuilt(more="Classifier: Topic :: Warps\n"), "the_metadata_is_whole", "Topic :: Warps"),
    "a relative link": (
        _rebuilt(body=f"![seen]({REPOSITORY}/a.png) [said](docs/x.md)\n"), "the_description_stands_alone", "docs/x.md"),
    "no picture": (_rebuilt(body="# warplens\n"), "the_description_stands_alone", "no picture"),
}  # fmt: skip


@pytest.mark.require("readme-renderer", "twine")
def test_a_release_without_a_mistake_passes(tree: Tree) -> None:
    assert tree.complaints() == {}


@pytest.mark.slow
@pytest.mark.require("readme-renderer", "twine")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str, tree: Tree) -> None:
    mistake, check, part = MISTAKES[name]
    mistake(tree)
    assert part in tree.complaints().get(check, "")


def test_every_check_has_a_mistake(tree: Tree) -> None:
    assert {check for _, check, _ in MISTAKES.values()} == {check.__name__ for check in tree.tool.CHECKS}
