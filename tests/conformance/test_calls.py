"""Calls: a function or class of the package gets its first three arguments by place, the others by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "warplens"
BY_PLACE = 3
# Kernels of in-kernel languages call functions that their compilers inline; `nvtx` is called for each range of a program.
EXEMPT = ("intrakernel", "nvtx")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _trees() -> dict[str, ast.Module]:
    """The modules to look at, by path below the package."""
    paths = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in paths.items()}


@cache
def _with_any_number() -> set[str]:
    """Names of functions that take `*arguments`, or all arguments by place alone."""
    functions = (node for tree in _trees().values() for node in ast.walk(tree) if isinstance(node, Function))
    return {each.name for each in functions if each.args.vararg is not None or each.args.posonlyargs}


def _called(call: ast.Call, known: set[str], methods: set[str]) -> str | None:
    """The name of what is called, if it is a function, class or own method that the module knows."""
    match call.func:
        case ast.Name(id=name) if name in known:
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in methods:
            return name
    return None


def _long_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each call with too many arguments by place."""
    known = {each.name for each in tree.body if isinstance(each, ast.ClassDef | Function)}
    calls, methods = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > BY_PLACE:
            calls.append(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("warplens"):
            known |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            methods |= {each.name for each in node.body if isinstance(each, Function)}
    for call in calls:
        by_place = [each for each in call.args if not isinstance(each, ast.Starred)]
        name = _called(call, known, methods)
        if name and len(by_place) > BY_PLACE and name not in _with_any_number():
            yield call.lineno, name


def test_arguments_beyond_the_third_have_names() -> None:
    calls = [
        f"{path}:{line} {name}"
        for path, tree in _trees().items()
        if path.split("/")[0] not in EXEMPT
        for line, name in _long_calls(tree)
    ]
    assert not calls, f"write the names of the arguments beyond the third: {calls}"
