"""Only `warplens.disk` creates, replaces and removes files: what forgets to look for links is a hole, so there is one place to look."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "warplens"
FORBIDDEN = {
    *(
        "unlink",
        "removedirs",
        "rmdir",
        "rmtree",
        "renames",
        "copyfile",
        "copy2",
        "copytree",
        "copyfileobj",
        "write_text",
        "write_bytes",
    ),
    *("symlink", "symlink_to", "hardlink_to", "touch", "mkfifo", "mknod", "chown", "lchown"),
}
OF_PATHS = {"rename", "replace"}  # of paths with one argument, of texts and open folders with two
OF_MODULES = {"remove", "rename", "replace", "link", "move", "copy", "truncate"}
WRITING = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}
ALLOWED = {
    "recording/agent/preload.py": {"symlink"},  # into a folder that mkdtemp() has just made
    "recording/launch/register.py": {
        "O_CREAT",
        "O_WRONLY",
        "O_APPEND",
    },  # opened with O_NOFOLLOW, then only by its descriptor
    "cli/group.py": {"open"},  # /dev/null
    "cli/main.py": {"O_WRONLY"},  # /dev/null
    "cli/printing/messages.py": {"O_WRONLY"},  # /dev/null
    "handover/priority.py": {"write_text"},  # a file of /proc
}


def uses(tree: ast.AST) -> Iterator[str]:
    """Yield what in a module may write or remove a file, by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in WRITING:
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil"):
            yield from FORBIDDEN.union(OF_MODULES).intersection(name.name for name in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, of = node.func.attr, node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            module = of in ("os", "shutil") and name in OF_MODULES
            path = (name in OF_PATHS and len(node.args) == 1) or (name == "open" and _writes(node.args[:1]))
            if name in FORBIDDEN or module or path:
                yield name
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "open"
            and _writes(node.args[1:2])
        ):
            yield "open"


def _writes(mode: list[ast.expr]) -> bool:
    """Whether a mode is one for writing, in whichever of its branches."""
    texts = [str(part.value) for word in mode for part in ast.walk(word) if isinstance(part, ast.Constant)]
    return any(set(text) & set("wxa+") and set(text) <= set("rwxabt+") for text in texts)


def test_only_one_package_writes_and_removes() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("disk/") and (used := set(uses(ast.parse(path.read_text(encoding="utf-8"))))):
            found[name] = used
    more = {
        name: sorted(used - ALLOWED.get(name, set()))
        for name, used in found.items()
        if used - ALLOWED.get(name, set())
    }
    assert not more, f"call warplens.disk instead: {more}"
    assert found == ALLOWED, "an exception that is not needed any more"


@pytest.mark.parametrize(
    "code",
    [
        *(
            "shutil.rmtree(x)",
            "os.unlink(x)",
            "path.unlink(missing_ok=True)",
            "os.remove(x)",
            "os.rename(a, b)",
            "os.replace(a, b)",
            "a.rename(b)",
        ),
        *(
            "a.replace(b)",
            "open(x, 'w')",
            "open(x, 'ab')",
            "open(x, 'w' if y else 'x')",
            "x.open('r+b')",
            "x.write_text('')",
            "x.write_bytes(b'')",
        ),
        *("shutil.move(a, b)", "os.open(x, os.O_RDWR)", "from os import unlink", "from shutil import rmtree"),
    ],
)
def test_the_rule_knows_what_it_forbids(code: str) -> None:
    assert list(uses(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "text.replace('a', 'b')",
        "open(x)",
        "open(x, 'rb')",
        "folder.rename('a', 'b')",
        "items.remove(x)",
        "open_report(x, 'w')",
    ],
)
def test_the_rule_lets_others_be(code: str) -> None:
    assert not list(uses(ast.parse(code)))
