"""tools/public_metadata.py: what PyPI shows leads nowhere that PyPI does not have."""

from __future__ import annotations

import email
import importlib
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://code.test/them/warplens"
TEXT = """\
![a picture](docs/a.png) [![nested](docs/b.svg)](docs/b.md)
[page](docs/page.md#part), [part](#part), [elsewhere](https://elsewhere.test/x), <a href="docs/c.md">tag</a>
<picture><source srcset="docs/dark.png"><img alt="x" src="docs/light.png"></picture>

```
[not a link](docs/page.md)
```
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("public_metadata")


class Page(HTMLParser):
    """Addresses in HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.ids: set[str] = set()
        self.feed(html)
        self.outside = [to for to in (*self.links, *self.pictures) if to not in self.ids]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids |= {f"#{values['id']}"} if "id" in values else set()
        self.links += [values["href"] or ""] if "href" in values else []
        self.pictures += [values["src"] or ""] if "src" in values else []


def _rendered(text: str) -> Page:
    """As PyPI shows it."""
    from readme_renderer.markdown import render

    return Page(render(text) or "")


def test_relative_addresses_become_those_of_the_tag(tool: ModuleType) -> None:
    changed = tool.long_description(TEXT, REPOSITORY, "1.2.0")
    at = f"{REPOSITORY}/blob/v1.2.0"
    raw = f"{REPOSITORY}/raw/v1.2.0"
    assert changed.splitlines() == [
        f"![a picture]({raw}/docs/a.png) [![nested]({raw}/docs/b.svg)]({at}/docs/b.md)",
        f'[page]({at}/docs/page.md#part), [part](#part), [elsewhere](https://elsewhere.test/x), <a href="{at}/docs/c.md">tag</a>',
        f'<picture><source srcset="{raw}/docs/dark.png"><img alt="x" src="{raw}/docs/light.png"></picture>',
        *TEXT.splitlines()[3:],
    ]


def test_without_a_repository_links_are_text_and_pictures_go(tool: ModuleType) -> None:
    changed = tool.long_description(TEXT, "", "1.2.0")
    assert changed.splitlines()[1:] == [
        "page, [part](#part), [elsewhere](https://elsewhere.test/x), tag",
        "<picture></picture>",
        *TEXT.splitlines()[3:],
    ]
    assert "docs/" not in changed.partition("```")[0]
    assert tool.urls("", "1.2.0") == {}


@pytest.mark.require("readme-renderer")
def test_the_readme_shows_a_picture_and_no_relative_link(tool: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = _rendered(tool.long_description(text, REPOSITORY, "1.2.0"))
    assert page.pictures
    assert all(to.startswith("https://") for to in page.outside)
    assert any(to.startswith(f"{REPOSITORY}/blob/v1.2.0/docs/") for to in page.links)
    for to in page.outside:
        path = (
            to.removeprefix(f"{REPOSITORY}/blob/v1.2.0/")
            .removeprefix(f"{REPOSITORY}/raw/v1.2.0/")
            .partition("#")[0]
        )
        assert path.startswith("https://") or (ROOT / path).exists()
    bare = _rendered(tool.long_description(text, "", "1.2.0"))
    assert bare.pictures == []
    assert all(to.startswith("https://") for to in bare.outside)


def test_every_project_url_comes_from_the_one_address(tool: ModuleType) -> None:
    fields = tool.dynamic_metadata({"repository": f"{REPOSITORY}/"}, {"version": "1.2.0"})
    assert fields["readme"]["content-type"] == "text/markdown"
    assert fields["urls"]["Source"] == REPOSITORY
    assert {"Documentation", "Changelog", "Issues"} <= fields["urls"].keys()
    for url in fields["urls"].values():
        assert url.startswith(REPOSITORY)
        path = url.partition("/blob/v1.2.0/")[2]
        assert (ROOT / path).exists()


@pytest.mark.slow
def test_the_build_takes_the_address_from_its_one_place(tmp_path: Path) -> None:
    """What the build backend makes of pyproject.toml, with an address and as it is."""
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "LICENSE-THIRD-PARTY",
        "src/warplens/_version.py",
        "tools/public_metadata.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    settings = tmp_path / "pyproject.toml"
    text, entered = re.subn(
        r'^repository = ".*"$', f'repository = "{REPOSITORY}"', settings.read_text(), flags=re.MULTILINE
    )
    assert entered == 1
    assert text.count(REPOSITORY) == 1
    settings.write_text(text)
    program = (
        "from scikit_build_core.build import prepare_metadata_for_build_wheel as prepare; prepare('out')"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True)
    (path,) = tmp_path.glob("out/*.dist-info/METADATA")
    made = email.message_from_string(path.read_text(encoding="utf-8"))
    version = made["Version"]
    assert f"Source, {REPOSITORY}" in made.get_all("Project-URL", [])
    assert f"]({REPOSITORY}/raw/v{version}/docs/images/" in str(made.get_payload())
    assert made["License-Expression"] == "Apache-2.0 AND MIT"


def test_every_package_in_the_page_is_named_with_its_licence() -> None:
    notices = (ROOT / "LICENSE-THIRD-PARTY").read_text(encoding="utf-8")
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    inside = {
        path: facts
        for path, facts in lock.items()
        if path and not facts.get("dev") and not facts.get("optional")
    }
    assert inside
    for path, facts in inside.items():
        name = path.rpartition("node_modules/")[2]
        (line,) = [line for line in notices.splitlines() if line.split() and line.split()[0] == name] or [""]
        assert line, f"LICENSE-THIRD-PARTY does not name {name}, which the page holds"
        assert facts["license"] == "MIT", (
            f"{name} is under another licence: LICENSE-THIRD-PARTY and pyproject.toml have to say so"
        )
        for file in (ROOT / "web" / path).glob("LICENSE*"):
            assert line.partition(" ")[2].strip() in file.read_text(encoding="utf-8")
