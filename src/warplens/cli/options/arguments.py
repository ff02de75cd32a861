"""Splitting `[OPTIONS] [--] PROGRAM …` the way nsys users type it.

Booleans take nothing, `=true|false`, or `true|false` as the next word. Options end at the first word that is none: what
follows is the program and its own options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warplens.cli.options import presets
from warplens.cli.options.nsys_options import LATER_OPTIONS, Later
from warplens.errors import UsageError

_TRUE = frozenset(("true", "yes", "on", "1"))
_FALSE = frozenset(("false", "no", "off", "0"))


@dataclass(slots=True)
class Arguments:
    """`options` are ours, as `--name=value`.

    `later` the accepted ones without effect, with value; `command` is the program.
    """

    options: list[str] = field(default_factory=list)
    later: list[tuple[Later, str]] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def split(words: Sequence[str], own: Mapping[str, tuple[str, bool]], command: str = "profile") -> Arguments:
    """Split the words after `command`.

    `own` maps each name of our options to its long name and whether it is a flag.

    UsageError if wrong.
    """
    result = Arguments()
    stands_for = Arguments()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            rest.insert(0, word)
            break
        name, value = _name_and_value(word)
        if name in presets.PRESETS:
            if value is not None:
                raise UsageError(f"{name} takes no value: it stands for {presets.PRESETS[name][0]}.")
            stands_for.options += split(presets.words(name), own, command).options
            continue
        later = LATER_OPTIONS.get(name)
        if name in own:
            long, flag = own[name]
        elif later is not None:
            long, flag = later.name, later.flag
        else:
            raise UsageError(_unknown(name, [*own, *LATER_OPTIONS], command))
        if flag:
            # "-f true prog" is a value, "--stats true" is the program called true
            if value is None and len(rest) > 1 and rest[0].lower() in ("true", "false"):
                value = rest.pop(0)
            value = "true" if boolean(name, value or "true") else "false"
        elif value is None:
            if not rest:
                raise UsageError(f"{name} needs a value.\n`warplens {command} --help` explains the options.")
            value = rest.pop(0)
        if later is not None and name not in own:
            result.later.append((later, value))
        else:
            result.options.append(f"{long}={value}")
    result.options = stands_for.options + result.options  # the last one counts
    result.command = rest
    return result


def _name_and_value(word: str) -> tuple[str, str | None]:
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    value = word[2:].removeprefix("=")
    return word[:2], value if len(word) > 2 else None


def boolean(name: str, value: str) -> bool:
    """Read the value of the flag `name`; UsageError if it is neither true nor false."""
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise UsageError(f"{name} is either on or off: write {name}=true or {name}=false, not {value!r}.")


def _unknown(name: str, known: Sequence[str], command: str) -> str:
    if name in ("--pid", "--attach"):
        return (
            f"`{command}` has no option {name}: it records a program that it starts itself, and cannot attach to one that runs.\n"
            "Start the program with `warplens launch PROGRAM`; then `warplens start` and `warplens stop` record it from another terminal. "
            "A program that runs already: py-spy dump --pid PID."
        )
    return f"`{command}` has no option {name}.{proposed(name, known)}\n`warplens {command} --help` shows the usage."


def proposed(name: str, known: Sequence[str]) -> str:
    """Return a sentence with the options that an unknown one may mean.

    Empty if none looks like it.

    Names of equal shape alone: of a short one, or of another first word, hardly any is meant.
    """
    import difflib

    alike = [other for other in known if len(other) > 2 and other.lstrip("-")[:2] == name.lstrip("-")[:2]]
    near = difflib.get_close_matches(name, alike if len(name) > 2 else [], n=3, cutoff=0.7)
    return f" Did you mean {' or '.join(near)}?" if near else ""
