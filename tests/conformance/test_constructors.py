"""Constructors keep what they get: none asks a report or a file of nsys, none loops. A class method, `of`, does."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "warplens"
QUESTIONS = {
    "report": ("table", "sql", "pieces"),
    "database": ("read", "grouped", "distinct", "count", "strings"),
}

LOOPING = {
    "Writer": "a file that is opened",
    "Server": "parts that hear of each other",
    **dict.fromkeys(("Shape", "TagTable", "CounterSemantics"), "values of users that are checked"),
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


def _loops(constructor: ast.FunctionDef) -> bool:
    return any(isinstance(node, (ast.For, ast.While)) for node in ast.walk(constructor))


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


def test_constructors_do_not_loop() -> None:
    looping = {
        name: path
        for path in sorted(PACKAGE.rglob("*.py"))
        for name, constructor in _constructors(ast.parse(path.read_text(encoding="utf-8")))
        if _loops(constructor)
    }
    assert looping.keys() == LOOPING.keys(), (
        "compute in a class method `of`, and give the constructor the result"
    )


def test_questions_and_loops_are_seen() -> None:
    text = (
        "class A:\n  def __init__(self, report):\n    self.report = report\n    x = [self.report.table('a')]"
        "\nclass B:\n  def __post_init__(self):\n    for x in self.a: pass"
    )
    (name, asking), (other, looping) = _constructors(ast.parse(text))
    assert (name, _questions(asking), _loops(asking)) == ("A", ["self.report.table"], False)
    assert (other, _questions(looping), _loops(looping)) == ("B", [], True)
