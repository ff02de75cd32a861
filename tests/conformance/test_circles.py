"""No circle of files: neither by imports within functions nor by types alone; in Python, native and TypeScript sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import circles

ROOT = Path(__file__).resolve().parents[2]
GRAPHS = {
    "python": lambda: circles.python_graph(ROOT / "src" / "warplens"),
    "native": lambda: circles.native_graph(ROOT / "native"),
    "web": lambda: circles.web_graph(ROOT / "web" / "src"),
}
# The circles that stay: one file of each, how many files it may have, and why. Take out what is gone.
KNOWN = {
    "python": {
        "warplens.nvtx._active": (
            3,
            "the binding's stub names a range written in Python, which records through the binding",
        ),
    },
    "native": {
        "agent/sources/nvtx/event": (5, "an event ends with its payloads, and a payload belongs to an event"),
        "bindings/ranges/event": (
            10,
            "Python types that hold each other: a domain keeps its strings and schemas, which name it",
        ),
        "preload/osrt/osrt": (
            12,
            "the stub's state holds the table of wrapped functions, and each of these asks the stub's state",
        ),
        "spool/buffers": (3, "a file hands out buffers, and a buffer is written into its file"),
        "spool/process_log": (
            3,
            "a process keeps the logs of its threads; these take chunks from it, inlined",
        ),
    },
    "web": {},
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_no_files_go_in_circles(kind: str) -> None:
    groups = circles.circles(GRAPHS[kind]())
    unknown = [group for group in groups if not any(name in group for name in KNOWN[kind])]
    assert not unknown, (
        "move what both need into a file of its own, or let the lower one declare an interface (a Protocol, a struct)"
    )
    grown = [
        name
        for group in groups
        for name, (size, _) in KNOWN[kind].items()
        if name in group and len(group) > size
    ]
    assert not grown, "a known circle has more files than before"


def test_imports_within_functions_and_for_types_count(tmp_path: Path) -> None:
    package = tmp_path / "p"
    (package / "part").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "a.py": "from p import b",
        "b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.part.c import C",
        "part/__init__.py": "",
        "part/c.py": "def late():\n    from ..a import x",
        "d.py": "import p.a",
        "user.py": "from p import compiled",
        "compiled.pyi": "from p.user import Thing",
    }.items():
        (package / name).write_text(text)
    assert circles.circles(circles.python_graph(package)) == [
        ["p.a", "p.b", "p.part.c"],
        ["p.compiled", "p.user"],
    ]


def test_a_source_and_its_header_are_one(tmp_path: Path) -> None:
    for name, text in {
        "a.h": "",
        "a.cpp": '#include "b.h"',
        "b.h": "",
        "b.cpp": '#include "a.h"',
        "c.cpp": '#include "a.h"',
    }.items():
        (tmp_path / name).write_text(text)
    assert circles.circles(circles.native_graph(tmp_path)) == [["a", "b"]]


def test_types_count_in_typescript(tmp_path: Path) -> None:
    for name, text in {
        "a.ts": 'import type { B } from "./b";',
        "b.ts": 'export { x } from "./c";',
        "c.ts": 'void import("./a");',
    }.items():
        (tmp_path / name).write_text(text)
    assert circles.circles(circles.web_graph(tmp_path)) == [["a.ts", "b.ts", "c.ts"]]
