"""Finds the name of a process: its program, or the script or module that an interpreter runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|php)[\d.]*(d|t)?|(ba|da|z|k)?sh")
_PYTHON = re.compile(r"(python|pypy)")
_WITH_VALUE = ("-W", "-X", "-O", "-o")
_LONGEST = 200


def program_name(executable: str, command: Sequence[str]) -> str | None:
    """Return a short name, e.g. `train.py` of `/usr/bin/python3 -u train.py`.

    None if nothing is known.
    """
    file, given = _base(executable), command[0] if command else ""
    # "sh" says more than the "dash" behind it, "ls" more than "busybox"; what holds a space is a title that a program gave itself
    own = _base(given) if given and " " not in given and not given.startswith("-") else file or given
    if _INTERPRETER.fullmatch(own) or _INTERPRETER.fullmatch(file):
        words = iter(command[1:])
        for word in words:
            if word == "-m" and _PYTHON.match(own):
                return next(words, own)[:_LONGEST]
            if word in ("-c", "-e", "-", "--version", "-V"):
                break
            if word in _WITH_VALUE:
                next(words, None)
            elif not word.startswith("-"):
                return _base(word)[:_LONGEST] or own
    return own[:_LONGEST] or None


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].removesuffix(" (deleted)")
