"""`make site`: the pages, the live examples, and nothing from another host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# What a browser would load by itself; links are only followed by people.
_LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?(?:https?:)?//|<link[^>]*rel=\"?stylesheet[^>]*href=\"?(?:https?:)?//")


@pytest.mark.require("zensical", "native", "g++")
def test_the_site_is_whole() -> None:
    done = subprocess.run([sys.executable, "tools/docs_site.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(ROOT / "site").as_posix(): path.read_text(encoding="utf-8") for path in (ROOT / "site").rglob("*.html")}
    assert {"index.html", "guide/profile.html", "reference/stats.html", "ARCHITECTURE.html", "live.html"} <= set(pages)
    for name, text in pages.items():
        assert not _LOADED.search(text), f"{name} loads something from another host"
    for name, word in (("training", "waited for data"), ("cpu", "held the GIL"), ("inside", "compute")):
        assert word in pages[f"live/{name}.html"]
        assert f"live/{name}.html" in pages["live.html"]
