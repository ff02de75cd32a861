"""Names of kernels and functions of CUDA, as people write them."""

from __future__ import annotations

import re

from warplens import native
from warplens.convert.texts import UNKNOWN
from warplens.native.names import LONGEST_NAME

_VERSION = re.compile(r"_v\d{4,}$")  # the runtime's; `_v2` of a driver's function is part of its name
_OPERATOR = re.compile(r"operator(?:\(\)|\[\]|[<>=!+\-*/%^&|~,]+)(?: (?=<))?")
_ANONYMOUS = "(anonymous namespace)"
_CLOSER = {"<": ">", "(": ")", "{": "}", "[": "]"}
_OPENER = {closer: opener for opener, closer in _CLOSER.items()}


def demangled(name: str | None) -> str | None:
    """Return a kernel's full name."""
    return (native.demangle(name) or name[:LONGEST_NAME]) if name else UNKNOWN


def short(name: str | None) -> str | None:
    """Return the function that a kernel is of."""
    whole = native.demangle(name) if name else None
    return function(whole) if whole else (name or UNKNOWN)[:LONGEST_NAME]


def call(name: str | None) -> str | None:
    """Return an API function's name as programs call it.

    The runtime appends versions, and `<<<>>>` calls `__cudaLaunchKernel` where nvcc 13 compiled it.
    """
    return _VERSION.sub("", name).removeprefix("__") if name else UNKNOWN


def function(demangled_name: str) -> str:
    """Return the name of a function alone: no namespace, return type, template arguments or parameters.

    `void at::native::reduce<4, f(int)>(int) const` is `reduce`; a lambda in a function is `{lambda(int)#1}`.
    """
    text = demangled_name.partition(" [clone ")[0]
    open_brackets: list[str] = []
    begin = at = 0
    end: int | None = None  # of the component that is being read, where its template arguments began
    name = ""
    while at < len(text):
        letter = text[at]
        word = letter == "o" and (at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"))
        operator = _OPERATOR.match(text, at) if word else None
        if operator is not None:
            at = operator.end()
            continue
        if not open_brackets:
            if text.startswith(_ANONYMOUS, at):
                at += len(_ANONYMOUS)
                continue
            if text.startswith("::", at):
                at, begin, end = at + 2, at + 2, None
                continue
            if letter == " ":
                begin, end = at + 1, None
            elif letter == "<" and end is None:
                end = at
            elif letter == "(":
                name = text[begin : at if end is None else end].rstrip() or name
        if letter in _CLOSER:
            open_brackets.append(letter)
        elif (
            letter in _OPENER
            and _OPENER[letter] in open_brackets
            and (letter != ">" or open_brackets[-1] == "<")
        ):
            # A `<` that is still open in here was a comparison.
            while open_brackets.pop() != _OPENER[letter]:
                pass
        at += 1
    return name or text[begin:end] or demangled_name
