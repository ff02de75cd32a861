"""Makes the project URLs and the package's long description from the public repository's address.

A dynamic-metadata provider: pyproject.toml names it, and gives it the address in `repository`, the only place where it stands.
PyPI shows no file of the repository, so every relative link and picture of README.md becomes an address at the tag of the version.
Without an address, links become text, and pictures are left out. Only the standard library: pip runs it while it builds a wheel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[1] / "README.md"
_FENCED = re.compile(r"(^```.*?^```[^\n]*\n)", re.MULTILINE | re.DOTALL)
_RELATIVE = r"(?!https?://|mailto:|#)(?P<to>[^)\"\s]+)"
_TARGET = re.compile(rf"(?P<before>\]\(|\b(?:src|srcset|href)=\"){_RELATIVE}")
_PICTURE_FILE = re.compile(r"\.(png|svg|gif|jpe?g|webp)$")


def urls(repository: str, version: str) -> dict[str, str]:
    """Links that PyPI shows beside the package; none without a repository."""
    if not repository:
        return {}
    at = f"{repository}/blob/v{version}"
    return {
        "Source": repository,
        "Documentation": f"{at}/docs/README.md",
        "Changelog": f"{at}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Security": f"{at}/SECURITY.md",
    }


def long_description(text: str, repository: str, version: str) -> str:
    """Turn the text of README.md into what PyPI can show."""
    change = (
        _without_links
        if not repository
        else lambda part: _TARGET.sub(lambda found: _absolute(found, repository, version), part)
    )
    parts = _FENCED.split(text)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def _absolute(found: re.Match[str], repository: str, version: str) -> str:
    kind = "raw" if _PICTURE_FILE.search(found["to"]) else "blob"
    return f"{found['before']}{repository}/{kind}/v{version}/{found['to']}"


def _without_links(part: str) -> str:
    for pattern, left in (
        (rf"!\[[^\]]*\]\({_RELATIVE}\)", ""),
        (rf"\[(?P<text>[^\]]*)\]\({_RELATIVE}\)", r"\g<text>"),
        (rf"<(?:img|source)\b[^>]*\b(?:src|srcset)=\"{_RELATIVE}\"[^>]*>", ""),
        (rf"<a\b[^>]*\bhref=\"{_RELATIVE}\"[^>]*>(?P<text>.*?)</a>", r"\g<text>"),
    ):
        part = re.sub(pattern, left, part, flags=re.DOTALL)
    return part


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields `readme` and `urls`, as scikit-build-core asks for them."""
    repository, version = str(settings["repository"]).rstrip("/"), str(project["version"])
    text = long_description(README.read_text(encoding="utf-8"), repository, version)
    return {"readme": {"content-type": "text/markdown", "text": text}, "urls": urls(repository, version)}
