"""Constructors keep what they get: none asks a report or a file of nsys. A class method, `of`, does."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "warplens"
QUESTIONS = {
    "report": ("table", "sql", "pieces"),
    "database": ("read", "grouped", "distinct", "count", "strings"),
}


def _questions(constructor: ast.FunctionDef) -> list[str]:
    """List the calls in a constructor that ask for rows."""
    calls = (node.func for node in ast.walk(constructor) if isinstance(node, ast.Call))
    return [
        ast.unparse(call)
        for call in calls
        if isinstance(call, ast.Attribute)
        and call.attr in QUESTIONS.get(ast.unparse(call.value).rpartition(".")[2].lstrip("_"), ())
    ]


def _constructors(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    return [
        (cls.name, method)
        for cls in ast.walk(tree)
        if isinstance(cls, ast.ClassDef)
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "__post_init__")
    ]


def test_constructors_ask_for_no_rows() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}: {name} calls {', '.join(questions)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, constructor in _constructors(ast.parse(path.read_text(encoding="utf-8")))
        if (questions := _questions(constructor))
    ]
    assert not wrong, "read the rows in a class method `of`, and give them to the constructor"


def test_questions_are_seen() -> None:
    text = (
        "class A:\n  def __init__(self, report):\n    self.report = report\n    x = [self.report.table('a')]"
    )
    ((name, constructor),) = _constructors(ast.parse(text))
    assert (name, _questions(constructor)) == ("A", ["self.report.table"])
