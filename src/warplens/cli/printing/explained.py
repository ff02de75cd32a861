"""Formats the difference of two runs as text and Markdown: their figures, then the parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplens.cli.printing.tables import apart, printable
from warplens.cli.printing.words import duration, size
from warplens.flows.explaining import DifferencePart, Explanation, Fact
from warplens.model.words import percent

if TYPE_CHECKING:
    from warplens.flows.differing import Difference

_FIGURES = 41  # columns before the text
_LONGEST = 100  # names of kernels have thousands of characters
_ALIKE = 0.01  # of the whole: a difference below it is none
_WORDS = {
    "Python function": "function",
    "native function": "function",
    "CUDA API call": "CUDA call",
    "unknown": "not known",
    "head": "before the first GPU work",
}


def as_text(difference: Difference, width: int) -> Iterator[str]:
    """Yield the lines for reading."""
    if difference.run:
        yield " ** The run:"
        yield ""
        yield f"  {'before':>10} {'after':>10} {'change':>10}"
        for fact in difference.run:
            yield f"  {_amount(fact.unit, fact.before):>10} {_amount(fact.unit, fact.after):>10} {_changed(fact):>10}  {fact.name}"
        yield ""
    if difference.explained is None:
        return
    whole = difference.explained
    yield f" ** {_title(whole)}:"
    yield ""
    yield f"  {'before':>10} {'after':>10} {'change':>10} {'of it':>6}"
    room = min(max(width - _FIGURES, 24) if width else _LONGEST, _LONGEST)
    texts = apart([_text(part) for part in whole.parts], room)
    for part in whole.parts:
        sides = f"{duration(part.before):>10} {duration(part.after):>10} {signed(part.delta):>10}"
        yield f"  {sides} {_share(part, whole):>6}  {texts[_text(part)]}"
    yield f"  {duration(whole.before):>10} {duration(whole.after):>10} {signed(whole.delta):>10} {'':>6}  all of it"
    yield from (f"  {note}" for note in whole.notes)
    yield ""


def as_markdown(difference: Difference) -> Iterator[str]:
    """Yield the lines of a comment on a pull request."""
    from warplens.cli.printing.findings import escaped

    if difference.run:
        yield from ("", "**The run**", "", "| before | after | change | |", "|--:|--:|--:|---|")
        for fact in difference.run:
            yield f"| {_amount(fact.unit, fact.before)} | {_amount(fact.unit, fact.after)} | {_changed(fact)} | {fact.name} |"
    whole = difference.explained
    if whole is None:
        return
    yield from (
        "",
        f"**{escaped(_title(whole))}**",
        "",
        "| before | after | change | of it | |",
        "|--:|--:|--:|--:|---|",
    )
    for part in whole.parts:
        sides = f"{duration(part.before)} | {duration(part.after)} | {signed(part.delta)}"
        yield f"| {sides} | {_share(part, whole)} | {escaped(_text(part))} |"
    yield from ("", *(f"*{note}*" for note in whole.notes))


def signed(ns: float) -> str:
    """Return a difference with its sign."""
    return ("+" if ns > 0 else "") + duration(ns)


def _title(whole: Explanation) -> str:
    what = {"run": "the run", "iteration": "one iteration of the main loop"}.get(
        whole.per, f"one {printable(whole.per)}"
    )
    where = printable(whole.where)
    if where.startswith("GPU "):
        where += ", and what the host did while it was idle"
    if abs(whole.delta) <= _ALIKE * max(whole.before, whole.after):
        return f"{what[0].upper()}{what[1:]} took as long as before; {where}"
    longer = "more" if whole.delta > 0 else "less"
    return f"Why {what} took {duration(abs(whole.delta))} {longer}; {where}"


def _text(part: DifferencePart) -> str:
    kind = _WORDS.get(part.kind, part.kind)
    name = {"collective wait": "waits for other ranks"}.get(part.name, part.name)
    text = " ".join(word for word in (f"{kind}:" if kind and name else kind, name) if word)
    text += f" ({part.detail})" if part.detail and part.detail != part.name else ""
    text += f" [not recorded {part.lacks}]" if part.lacks else ""
    return printable(text)


def _share(part: DifferencePart, whole: Explanation) -> str:
    """How much of the difference a part is; empty if the two took equally long."""
    if abs(whole.delta) <= _ALIKE * max(whole.before, whole.after):
        return ""
    return percent(part.delta / whole.delta)


def _amount(unit: str, value: float | None) -> str:
    if value is None:
        return "-"
    return duration(value) if unit == "ns" else size(round(value)) if unit == "bytes" else f"{value:,.4g}"


def _changed(fact: Fact) -> str:
    if fact.before is None or fact.after is None or not fact.before:
        return "" if fact.before == fact.after else "-"
    return "same" if fact.before == fact.after else percent(fact.after / fact.before - 1, 1, sign=True)
