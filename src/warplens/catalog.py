"""Finds the units of a family: one file is one unit, found by listing and read without importing.

A unit's id is its file name, its help the module docstring (`## …` lines open sections), its options the keyword-only
parameters of the family's entry function. Units are read with `ast`, so one that needs an absent package is still
listed and described; only `load()` imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from warplens.errors import UsageError

Named = TypeVar("Named")

_ROOT = Path(__file__).parent


@dataclass(frozen=True)
class UnitFamily:
    """A folder of units: `noun` names one unit, `entry` its function, `sections` its docstring's.

    The docstring must have these sections.
    """

    name: str
    noun: str
    entry: str
    sections: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that holds the family's units; it may not exist yet."""
        return _ROOT.joinpath(*self.name.split("."))


FAMILIES: dict[str, UnitFamily] = {
    family.name: family
    for family in (
        UnitFamily(
            "stats.tables",
            "stat",
            "table",
            sections=("What it shows", "Columns", "How it is computed", "Traps"),
        ),
        UnitFamily(
            "exporters.formats",
            "export format",
            "write",
            sections=("What maps to what", "What is lost"),
            constants=("SUFFIX", "LOSES"),
        ),
        UnitFamily(
            "importers.formats",
            "import format",
            "read",
            sections=("Made by", "What maps to what", "What is dropped"),
            constants=("SUFFIXES", "CONTENT", "DROPS"),
        ),
        UnitFamily(
            "rules.checks",
            "rule",
            "check",
            sections=("What it looks for", "Why it costs time", "What to do", "When it does not apply"),
            constants=("LINK",),
        ),
        UnitFamily(
            "intrakernel.dsl",
            "in-kernel language",
            "bind",
            sections=("Install", "Example", "Overhead", "What the compiler may move"),
        ),
        UnitFamily(
            "recipes.questions",
            "recipe",
            "part",
            sections=("What it asks", "How it is computed", "Traps"),
        ),
        UnitFamily("cli.commands", "command", "command"),
    )
}


@dataclass(frozen=True)
class Option:
    """A keyword-only parameter of an entry function.

    Annotation and default are source text, `text` is from `Args:`.
    """

    name: str
    annotation: str
    default: str | None
    text: str = ""

    @property
    def required(self) -> bool:
        """Whether the option has no default."""
        return self.default is None

    @property
    def value(self) -> Any:
        """The default as a value where it is a literal, else None."""
        return None if self.default is None else _literal(ast.parse(self.default, mode="eval").body)


@dataclass(frozen=True)
class Unit:
    """One file of a family, read from its source."""

    id: str
    family: UnitFamily
    path: Path

    @property
    def module(self) -> str:
        """Dotted name of the unit's module."""
        return f"warplens.{self.family.name}.{self.id}"

    @cached_property
    def source(self) -> str:
        """The text of the file."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.source, str(self.path))

    @cached_property
    def doc(self) -> str:
        """The module docstring, cleaned of indentation; empty if there is none."""
        return ast.get_docstring(self.tree) or ""

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.doc.partition("\n")[0].strip()

    @property
    def body(self) -> str:
        """What the docstring says between the summary and the first section."""
        return re.split(r"^## ", self.doc.partition("\n")[2], maxsplit=1, flags=re.MULTILINE)[0].strip()

    @cached_property
    def sections(self) -> dict[str, str]:
        """Title of each `## …` line to the text below it, in order."""
        _, *parts = re.split(r"^## +(.+?) *$", self.doc, flags=re.MULTILINE)
        return {title: text.strip("\n").rstrip() for title, text in zip(parts[::2], parts[1::2], strict=True)}

    @cached_property
    def entry(self) -> ast.FunctionDef | None:
        """The entry function, where the unit defines it with `def`."""
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == self.family.entry:
                return node
        return None

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The entry function's keyword-only parameters, in order."""
        if self.entry is None:
            return ()
        texts = _argument_texts(ast.get_docstring(self.entry) or "")
        arguments = self.entry.args
        return tuple(
            Option(
                argument.arg,
                "" if argument.annotation is None else ast.unparse(argument.annotation),
                None if default is None else ast.unparse(default),
                text=texts.get(argument.arg, ""),
            )
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        )

    def constant(self, name: str) -> Any:
        """Value of the module-level literal `name`; None where there is none."""
        # Parsing all files of a family takes 0.1 s, so only the statement is parsed: the fewest lines that are one.
        if start := re.search(rf"^{name}\b[^=\n]*=", self.source, flags=re.MULTILINE):
            lines = self.source[start.start() :].splitlines()
            for end in range(1, len(lines) + 1):
                with suppress(SyntaxError):
                    node = ast.parse("\n".join(lines[:end])).body[0]
                    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
                    return None if value is None else _literal(value)
        return None

    def load(self) -> ModuleType:
        """Import the unit; ImportError where it needs a package that is absent."""
        return import_module(self.module)


def family(name: str) -> UnitFamily:
    """Return the family called `name`, e.g. `stats.tables`; KeyError if there is none."""
    return FAMILIES[name]


@cache
def _units(name: str) -> tuple[Unit, ...]:
    kind = family(name)
    paths = sorted(kind.folder.glob("*.py")) if kind.folder.is_dir() else []
    return tuple(Unit(path.stem, kind, path) for path in paths if not path.stem.startswith("_"))


def units(name: str) -> list[Unit]:
    """List the units of the family `name`, by id; empty where the family has none yet."""
    return list(_units(name))


def find(name: str, id: str) -> Unit:
    """Return unit `id` of family `name` (`-` and `_` are the same).

    UsageError names near matches.
    """
    return named(family(name).noun, id, {unit.id: unit for unit in _units(name)})


def named(noun: str, id: str, known: Mapping[str, Named]) -> Named:
    """Return the `noun` that is called `id` (`-` and `_` are the same).

    UsageError names near matches.
    """
    wanted = id.replace("-", "_")
    if wanted in known:
        return known[wanted]
    import difflib  # only wrong names pay for it

    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.65)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known) or 'none'}."
    raise UsageError(f"no {noun} {id!r}; {hint}")


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _argument_texts(doc: str) -> dict[str, str]:
    """Read a Google-style `Args:` section: name to text, lines joined."""
    section = re.search(r"^Args:\n((?:[ \t]+\S.*\n?|\n)+)", doc, flags=re.MULTILINE)
    texts: dict[str, str] = {}
    if section is None:
        return texts
    name, indent = "", 0
    for line in section[1].splitlines():
        match = re.match(r"( +)(\w+)(?: *\([^)]*\))?: *(.*)", line)
        if match and (not name or len(match[1]) <= indent):
            name, indent = match[2], len(match[1])
            texts[name] = match[3].strip()
        elif name and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts
