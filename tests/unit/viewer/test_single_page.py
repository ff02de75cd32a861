"""The page that holds its data: whole, closed to the outside, and not to be broken out of."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from warplens.errors import UsageError
from warplens.viewer.bundle import File, files
from warplens.viewer.page.single_page import single_page

INDEX = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>warplens</title>
    <link rel="icon" href="./assets/icon-1.svg" />
    <script type="module" crossorigin src="./assets/index-1.js"></script>
    <link rel="modulepreload" href="./assets/other.js">
    <link rel="stylesheet" crossorigin href="./assets/index-1.css">
  </head>
  <body><div id="app"></div></body>
</html>
"""
SCRIPT = 'const a="</script><script>alert(1)</script>",b="<!-- <title>x</title> </body>";\r\nshow(a,b)'
STYLE = 'a::after{content:"</style><script>alert(2)</script>"}'


def built() -> dict[str, File]:
    return {
        "/": File(INDEX.encode(), "text/html", False),
        "/assets/index-1.js": File(SCRIPT.encode(), "text/javascript", True),
        "/assets/index-1.css": File(STYLE.encode(), "text/css", True),
        "/assets/icon-1.svg": File(b"<svg/>", "image/svg+xml", True),
    }


class Elements(HTMLParser):
    """What a browser makes of it: elements with their attributes, and what stands in scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, str]] = []
        self.open: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style", "title"):
            self.inside.append((tag, ""))
            self.open = tag

    def handle_endtag(self, tag: str) -> None:
        self.open = None

    def handle_data(self, data: str) -> None:
        if self.open is not None:
            self.inside[-1] = (self.open, self.inside[-1][1] + data)


def test_the_page_is_one_file() -> None:
    page = Elements(single_page(built(), "run", {"meta": b"{}"}).decode())
    assert not [
        attributes
        for _, attributes in page.found
        if attributes.get("src") or not (attributes.get("href") or "data:").startswith("data:")
    ]
    assert [tag for tag, _ in page.found].count("script") == 2
    assert [tag for tag, _ in page.found].count("style") == 1


def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    text = single_page(built(), "run", {}).decode()
    page = Elements(text)
    policy = next(
        str(attributes["content"])
        for _, attributes in page.found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    script, style = (re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))
    assert script is not None
    assert style is not None
    for kind, match in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(match[1].encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "connect-src" not in policy


def test_answers_come_back_as_they_were() -> None:
    answers = {"meta": b'{"a":"</script>"}', "viewport/0/1": bytes(range(256)) * 40}
    text = single_page(built(), "run", answers).decode()
    found = dict(re.findall(r'data-answer="([^"]+)">([^<]*)</script>', text))
    assert {key: gzip.decompress(base64.b64decode(packed)) for key, packed in found.items()} == answers


@pytest.mark.parametrize("name", ["</title><script>alert(3)</script>", "a\"'&<b>", "</script>"])
def test_no_name_is_read_as_html(name: str) -> None:
    page = Elements(single_page(built(), name, {f"stat/0/{name}": name.encode()}).decode())
    assert [text for tag, text in page.inside if tag == "title"] == [name]
    assert [tag for tag, _ in page.found].count("script") == 2
    assert f"stat/0/{name}" in [attributes.get("data-answer") for _, attributes in page.found]


def test_the_same_answers_give_the_same_page() -> None:
    assert single_page(built(), "run", {"meta": b"x" * 1000}) == single_page(
        built(), "run", {"meta": b"x" * 1000}
    )


def test_a_checkout_without_the_page_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="make web"):
        single_page(files(tmp_path / "nothing"), "run", {})


def test_a_page_that_lacks_a_part_says_so() -> None:
    parts = built()
    del parts["/assets/index-1.css"]
    with pytest.raises(UsageError, match="lacks"):
        single_page(parts, "run", {})
