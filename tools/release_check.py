"""Checks that dist/ is ready for a release (`make release-check`); steps: docs/dev/releasing.md."""

from __future__ import annotations

import email
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pythons import SUPPORTED
from wheel_contents import OLD_NAME, complaints

ROOT = Path(__file__).resolve().parent.parent
MACHINES = ("x86_64", "aarch64")
LINKS = {"Source", "Documentation", "Changelog", "Issues"}


@dataclass(frozen=True)
class Release:
    """A checkout and what was built from it."""

    root: Path = ROOT

    @property
    def version(self) -> str:
        """What `_version.py` says."""
        text = (self.root / "src" / "warplens" / "_version.py").read_text(encoding="utf-8")
        match = re.search(r'__version__ = "(.+)"', text)
        return match[1] if match else ""

    @property
    def made(self) -> dict[str, Any]:
        """What `make wheels` wrote down; empty before it."""
        try:
            facts: dict[str, Any] = json.loads(
                (self.root / "build" / "wheels" / "made.json").read_text(encoding="utf-8")
            )
        except (OSError, ValueError):
            return {}
        return facts

    def files(self, pattern: str) -> list[Path]:
        """Files of dist/, by name."""
        return sorted((self.root / "dist").glob(pattern))

    def git(self, *words: str) -> str:
        """What git says of the checkout."""
        return subprocess.run(
            ["git", "-C", str(self.root), *words], capture_output=True, text=True, check=False
        ).stdout.strip()

    def metadata(self, path: Path) -> Message:
        """The metadata of an sdist or a wheel."""
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as packed:
                name = next(name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
                return email.message_from_bytes(packed.read(name))
        with tarfile.open(path) as archive:
            name = next(name for name in archive.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name))
            file = archive.extractfile(name)
            assert file is not None
            return email.message_from_bytes(file.read())

    @property
    def packed(self) -> list[Path]:
        """The sdist and the wheels."""
        return [*self.files("*.tar.gz"), *self.files("*.whl")]


def the_version_is_final(release: Release) -> Iterator[str]:
    """A release has a version that people compare: X.Y.Z, with aN, bN or rcN behind it before it is final."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", release.version):
        yield f"src/warplens/_version.py says {release.version!r}: write X.Y.Z, or X.Y.Zrc1"


def the_changelog_has_the_version(release: Release) -> Iterator[str]:
    """The changelog's newest section is that of the version, with a date, and nothing is left under Unreleased."""
    text = (release.root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    if sections and sections[0][0] == "Unreleased" and sections.pop(0)[1].strip():
        yield "CHANGELOG.md has entries under Unreleased: move them below the heading of the version"
    if not sections or not re.fullmatch(
        rf"{re.escape(release.version)} [-–] \d{{4}}-\d\d-\d\d", sections[0][0]
    ):
        yield f"CHANGELOG.md: the newest section is not `## {release.version} - YYYY-MM-DD`"


def the_tree_is_clean(release: Release) -> Iterator[str]:
    """What is released is a commit."""
    if changed := release.git("status", "--porcelain"):
        yield f"git: there are changes that are not committed:\n{changed}"


def the_tag_is_free(release: Release) -> Iterator[str]:
    """The tag of the version names this commit, or nothing yet."""
    tagged = release.git("rev-parse", "--verify", "--quiet", f"v{release.version}^{{commit}}")
    if tagged and tagged != release.git("rev-parse", "HEAD"):
        yield f"git: the tag v{release.version} names another commit: a version is released once"


def the_repository_is_known(release: Release) -> Iterator[str]:
    """The address of the public repository was entered, and the packages link to it."""
    text = (release.root / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'^repository = "(.*)"$', text, flags=re.MULTILINE)
    repository = match[1] if match else ""
    if not re.fullmatch(r"https://[^/\s]+/\S+[^/\s]", repository) or re.search(
        r"example\.(org|com)|OWNER|HOST", repository
    ):
        yield f"pyproject.toml: repository is {repository!r}: enter the address of the public repository"
        return
    for path in release.packed:
        urls = dict(str(value).split(", ", 1) for value in release.metadata(path).get_all("Project-URL", []))
        if not urls.keys() >= LINKS or not all(url.startswith(repository) for url in urls.values()):
            yield f"{path.name}: its project URLs are {urls or 'missing'}, not below {repository}: run make wheels"


def dist_is_what_was_tried(release: Release) -> Iterator[str]:
    """Every file of dist/ is one that `make wheels` made of this commit and tried."""
    made = release.made
    if not made:
        yield "dist/ was not made by `make wheels`: run it"
        return
    if made["commit"] != release.git("rev-parse", "HEAD"):
        yield f"dist/ was made of commit {made['commit'][:12]}, not of this one: run make wheels"
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in release.files("*")}
    if there != made["files"]:
        yield f"dist/ holds other files than `make wheels` made: {', '.join(sorted(there)) or 'none'}"
    for name, wheel in made["wheels"].items():
        if not wheel["worked"]:
            yield f"{name}: `make wheels` could not try it"


def dist_is_complete(release: Release) -> Iterator[str]:
    """One sdist, and a wheel for each machine with a binding for each Python."""
    version = release.version
    wanted = {
        f"warplens-{version}.tar.gz",
        *(f"warplens-{version}-py3-none-manylinux_2_28_{machine}.whl" for machine in MACHINES),
    }
    there = {path.name for path in release.files("*")}
    yield from (f"dist/ lacks {name}" for name in sorted(wanted - there))
    yield from (f"dist/ holds {name}, which is no part of {version}" for name in sorted(there - wanted))
    for machine in MACHINES:
        for wheel in release.files(f"*-manylinux_2_28_{machine}.whl"):
            yield from complaints(wheel, release.root, machine, SUPPORTED)


def the_sdist_has_the_sources(release: Release) -> Iterator[str]:
    """The sdist holds every tracked file (CI's aside) and the page.

    The former name is in its changelog only.
    """
    for path in release.files("*.tar.gz"):
        with tarfile.open(path) as archive:
            files = [member for member in archive.getmembers() if member.isfile()]
            names = {member.name.partition("/")[2] for member in files}
            old = {member.name for member in files if OLD_NAME in archive.extractfile(member).read().lower()}  # type: ignore[union-attr]
        tracked = {name for name in release.git("ls-files").splitlines() if not name.startswith(".ci/")}
        yield from (f"{path.name} lacks {name}" for name in sorted(tracked - names))
        if "src/warplens/viewer/_bundle/index.html" not in names:
            yield f"{path.name} lacks the page of `warplens view`"
        yield from (
            f"{path.name}: {name} holds the former name"
            for name in sorted(old)
            if not name.endswith("/CHANGELOG.md")
        )


def twine_accepts_it(release: Release) -> Iterator[str]:
    """`twine check --strict`: the long description can be shown."""
    words = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *map(str, release.packed)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"twine check --strict:\n{done.stdout}{done.stderr}"


def the_metadata_is_whole(release: Release) -> Iterator[str]:
    """Version, licences and classifiers are there, and the classifiers are ones that PyPI knows."""
    from trove_classifiers import classifiers

    for path in release.packed:
        facts = release.metadata(path)
        if facts["Version"] != release.version:
            yield f"{path.name}: its metadata says version {facts['Version']}, _version.py {release.version}"
        if not facts["License-Expression"] or {"LICENSE", "LICENSE-THIRD-PARTY"} - set(
            facts.get_all("License-File", [])
        ):
            yield f"{path.name}: its metadata lacks the licence, or a file of it"
        named = set(facts.get_all("Classifier", []))
        yield from (f"{path.name}: PyPI knows no classifier {name!r}" for name in sorted(named - classifiers))
        wanted = {f"Programming Language :: Python :: {major}.{minor}" for major, minor in SUPPORTED}
        yield from (
            f"{path.name}: its metadata lacks the classifier {name!r}" for name in sorted(wanted - named)
        )


class _Links(HTMLParser):
    """What a page leads to and shows, and the places in it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the addresses of links and pictures."""
        values = dict(attrs)
        if "id" in values:
            self.places.add(f"#{values['id']}")
        if tag == "a" and "href" in values:
            self.links.append(values["href"] or "")
        if tag == "img":
            self.pictures.append(values.get("src") or "")


def the_description_stands_alone(release: Release) -> Iterator[str]:
    """Rendered as PyPI does it, the long description has a picture, and nothing that PyPI cannot find."""
    from readme_renderer.markdown import render

    for path in release.packed:
        facts = release.metadata(path)
        shown = render(str(facts.get_payload(decode=True).decode()))  # type: ignore[union-attr]
        page = _Links()
        page.feed(shown or "")
        there = [to for to in (*page.links, *page.pictures) if to not in page.places]
        relative = [to for to in there if not to.startswith(("https://", "http://", "mailto:"))]
        yield from (
            f"{path.name}: the long description leads to {to}, which PyPI does not have" for to in relative
        )
        if not page.pictures:
            yield f"{path.name}: the long description shows no picture"


CHECKS: tuple[Callable[[Release], Iterator[str]], ...] = (
    the_version_is_final,
    the_changelog_has_the_version,
    the_tree_is_clean,
    the_tag_is_free,
    the_repository_is_known,
    dist_is_what_was_tried,
    dist_is_complete,
    the_sdist_has_the_sources,
    twine_accepts_it,
    the_metadata_is_whole,
    the_description_stands_alone,
)


def main() -> int:
    """Print what each check says; 1 where one complains."""
    release = Release()
    failed = 0
    for check in CHECKS:
        found = list(check(release))
        failed += bool(found)
        print(f"{'fail' if found else 'ok':5} {check.__name__.replace('_', ' ')}")
        for line in "\n".join(found).splitlines():
            print(f"      {line}")
    print(
        f"\n{failed} of {len(CHECKS)} checks failed."
        if failed
        else f"\nwarplens {release.version} can be uploaded: docs/dev/releasing.md"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
