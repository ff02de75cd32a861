"""The import graphs of the source tree, and the circles in them: Python modules, native files, TypeScript modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

Graph = dict[str, set[str]]
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_FROM = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*["'](\.{1,2}/[^"']+)["']""")


def python_graph(package: Path) -> Graph:
    """Return which modules of a package each module imports: at its top, within functions and under TYPE_CHECKING.

    A compiled module imports what its stub imports. That a module's package runs before it is no edge: a package that offers what its
    modules define would be a circle each time.
    """
    modules = {_module(package, path): path for kind in ("*.pyi", "*.py") for path in package.rglob(kind)}
    graph: Graph = {}
    for module, path in modules.items():
        graph[module] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                graph[module] |= {alias.name for alias in node.names if alias.name in modules}
            elif isinstance(node, ast.ImportFrom):
                base = _base(module, path, node)
                for alias in node.names:
                    name = f"{base}.{alias.name}"
                    graph[module] |= {name if name in modules else base} & modules.keys()
    return graph


def native_graph(root: Path) -> Graph:
    """Return which units include each other's headers. A unit is a source with the header of its name: `session.cpp` and `session.h`."""
    files = [path for path in root.rglob("*") if path.suffix in {".c", ".cpp", ".h", ".hpp", ".cuh"}]
    graph: Graph = {}
    for path in files:
        edges = graph.setdefault(_unit(root, path), set())
        for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            places = (
                folder / name
                for folder in (path.parent, *path.parent.parents)
                if root == folder or root in folder.parents
            )
            target = next(
                (place.resolve() for place in (*places, root / "include" / name) if place.is_file()), None
            )
            if target is not None and _unit(root, target) != _unit(root, path):
                edges.add(_unit(root, target))
    return graph


def web_graph(root: Path) -> Graph:
    """Return which TypeScript modules import each other, types and dynamic imports included."""
    files = {path.resolve(): path for kind in ("*.ts", "*.tsx") for path in root.rglob(kind)}
    graph: Graph = {}
    for path in files:
        graph[_relative(root, path)] = set()
        for name in _FROM.findall(path.read_text(encoding="utf-8")):
            base = (path.parent / name).resolve()
            for target in (
                base,
                *(base.parent / f"{base.name}{end}" for end in (".ts", ".tsx", "/index.ts", "/index.tsx")),
            ):
                if target in files:
                    graph[_relative(root, path)].add(_relative(root, target))
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other, each sorted: strongly connected components of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[list[str]] = []
    for root in graph:
        work = [(root, iter(sorted(graph[root])))] if root not in index else []
        while work:
            node, edges = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for target in edges:
                if target not in index:
                    work.append((target, iter(sorted(graph.get(target, ())))))
                    break
                if target in stack:
                    low[node] = min(low[node], low[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    group, stack[at:] = sorted(stack[at:]), []
                    result += [group] if len(group) > 1 else []
    return sorted(result)


def _module(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _base(module: str, path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + (path.name == "__init__.py")]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _unit(root: Path, path: Path) -> str:
    return _relative(root, path).rpartition(".")[0]


def _relative(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()
