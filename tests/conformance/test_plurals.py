"""Messages count things with `counted`: "1 kernel", "2 kernels", never "1 kernels"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "warplens"
NOUN = re.compile(
    r" (?:[a-z-]+ )?(kernels|calls|ranges|threads|files|rows|ranks|samples|events|processes|places|steps|gaps|copies|launches"
    r"|waits|functions|records|others|tracks|iterations|streams|units|warps|tasks|names|stacks|parts|collections|switches)\b"
)
# Numbers that are never 1, by the text of the template and why.
NEVER_ONE = {
    "at most": "a limit",
    "more than": "a limit",
    "has keys for": "a limit",
    " to {": "a span between two numbers",
}


def templates(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each f-string in which a plain number stands before a plural."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if (
                isinstance(value, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and NOUN.match(str(text.value))
                and _is_a_number(value)
            ):
                yield node.lineno, ast.unparse(node)


def _is_a_number(value: ast.FormattedValue) -> bool:
    """Whether a field is written as a number: with thousands separated, by `len`, or by `sum`."""
    spec = "" if value.format_spec is None else ast.unparse(value.format_spec)
    call = value.value.func if isinstance(value.value, ast.Call) else None
    constant = isinstance(value.value, ast.Name) and value.value.id.lstrip("_").isupper()
    return not constant and ("," in spec or (isinstance(call, ast.Name) and call.id in ("len", "sum", "int")))


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_plural_has_its_singular(path: Path) -> None:
    wrong = [
        f"{path.name}:{line}: {text}"
        for line, text in templates(ast.parse(path.read_text(encoding="utf-8")))
        if not any(phrase in text for phrase in NEVER_ONE)
    ]
    assert not wrong, f"use counted(number, noun) of warplens.model.words: {wrong}"


def test_the_check_sees_a_hard_coded_plural() -> None:
    tree = ast.parse(
        "f'{number:,} kernels'; f'{len(rows)} small files'; f'{counted(3, \"row\")}'; f'{_MOST:,} rows'"
    )
    assert [text for _, text in templates(tree)] == ["f'{number:,} kernels'", "f'{len(rows)} small files'"]
