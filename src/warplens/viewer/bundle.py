"""The built page: its files in memory, by the paths that a browser asks for.

A path is looked up, never followed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("_bundle")
SINGLE = "single"  # the same page, its script in one piece: for single files
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}
NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>warplens</title><h1>The page is not built</h1>
<p>This warplens comes from a checkout without its page. With Node there: <code>make web</code>. A wheel from PyPI has it.</p>
"""


@dataclass(frozen=True)
class File:
    """One file of the page.

    `kept`: its name changes with its content, so that browsers may keep it.
    """

    content: bytes
    kind: str
    kept: bool


def files(folder: Path = FOLDER, *, single: bool = False) -> dict[str, File]:
    """Return the files of the page by path (`/`, `/assets/…`); `/` says what to do without.

    `single`: with one script alone.
    """
    by_path = {}
    own = folder / SINGLE
    folder = own if single else folder
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.suffix in _KINDS and (single or own not in path.parents):
            name = path.relative_to(folder).as_posix()
            by_path["/" if name == "index.html" else f"/{name}"] = File(
                path.read_bytes(), _KINDS[path.suffix], name.startswith("assets/")
            )
    return by_path if "/" in by_path else {"/": File(NOT_BUILT.encode(), _KINDS[".html"], False)}
