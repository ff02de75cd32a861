"""Writes the table of tested Pythons into docs/explain/python.md, from tests/tested_pythons.json.

`--check` writes nothing and fails when the guide is not what the file says.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "explain" / "python.md"
BLOCK = re.compile(
    r"(<!-- begin tested-pythons: [^>]*-->\n).*?(<!-- end tested-pythons -->)", flags=re.DOTALL
)


def table() -> str:
    """Return the table: with which Pythons recording was tested, and how it went."""
    kept = json.loads((ROOT / "tests" / "tested_pythons.json").read_text(encoding="utf-8"))
    lines = ["| Python | tested release | on | tests of recording |", "| --- | --- | --- | --- |"]
    for name, one in kept.items():
        lines.append(
            f"| CPython {name} | {one['version']} | {one['system']} | {one['passed']} passed, {one['skipped']} skipped |"
        )
    return "\n".join(lines)


def main() -> int:
    """Write or check the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    if BLOCK.search(text) is None:
        raise SystemExit(
            "docs/explain/python.md lacks the marks: <!-- begin tested-pythons: … --> and <!-- end tested-pythons -->"
        )
    written = BLOCK.sub(lambda marks: f"{marks[1]}\n{table()}\n\n{marks[2]}", text)
    if written == text:
        return 0
    if "--check" in sys.argv[1:]:
        print("docs/explain/python.md is not what tests/tested_pythons.json says; run: make docs")
        return 1
    GUIDE.write_text(written, encoding="utf-8")
    print("wrote: docs/explain/python.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
