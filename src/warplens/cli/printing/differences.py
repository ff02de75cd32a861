"""Formats the differences of two recordings as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from warplens.cli.printing import explained
from warplens.cli.printing.explained import signed as _signed
from warplens.cli.printing.findings import escaped
from warplens.cli.printing.tables import apart, printable
from warplens.cli.printing.words import counted, duration
from warplens.model.words import percent

if TYPE_CHECKING:
    from warplens.flows.differing import Change, Difference, FindingChange
    from warplens.flows.explaining import Explanation
    from warplens.flows.gating import Verdict

SCHEMA = "warplens.diff/1"
_TITLES = {
    "step": "Steps",
    "gpu": "GPUs",
    "kernel": "Kernels",
    "inside": "Inside kernels",
    "memory": "Copies and memsets",
    "graph": "CUDA graphs",
    "range": "NVTX ranges",
    "api": "CUDA API calls",
    "os": "OS calls",
}
_FIGURES = 76  # columns before the name


def as_text(difference: Difference, verdicts: Sequence[Verdict], rows: int, width: int) -> Iterator[str]:
    """Yield the lines for reading: `rows` of each kind, the greatest changes first.

    What stayed the same is only counted.
    """
    yield from explained.as_text(difference, width)
    for kind, title in _TITLES.items():
        own = difference.of(kind)
        if not own:
            continue
        shown = _shown(own, rows)
        yield f" ** {title}, {_per(difference, kind)}:"
        yield ""
        if shown:
            yield f"  {'before':>10} {'after':>10} {'change':>10} {'':>8} {'± noise':>9}  {'':8} {'count':>13} name"
        names = apart([_name(change) for change in shown], max(width - _FIGURES, 24) if width else 1000)
        for change in shown:
            sides = (duration(side.time) if side else "-" for side in (change.before, change.after))
            noise = "" if not change.noise else duration(change.noise)
            told = "" if change.relative is None else percent(change.relative, 1, sign=True)
            line = f"  {' '.join(f'{side:>10}' for side in sides)} {_signed(change.delta):>10} {told:>8} {noise:>9}  "
            yield (
                line
                + f"{change.status if change.status != 'changed' else '':8} {_count(change):>13} {names[_name(change)]}"
            )
        yield from _left(own, shown)
        yield ""
    yield from _findings(difference.findings)
    for note in difference.notes:
        yield f"Note: {note}"
    for verdict in verdicts:
        yield f"{_verdict(verdict)}  {verdict.text}: {verdict.told}"


def as_markdown(difference: Difference, verdicts: Sequence[Verdict], rows: int, width: int) -> Iterator[str]:
    """Yield the lines of a comment on a pull request."""
    for verdict in verdicts:
        yield f"- **{_verdict(verdict)}** `{verdict.text.replace('`', '')}`: {escaped(verdict.told)}"
    yield from explained.as_markdown(difference)
    for kind, title in _TITLES.items():
        own = difference.of(kind)
        shown = _shown(own, rows)
        if not shown:
            continue
        yield from (
            "",
            f"**{title}**, {_per(difference, kind)}",
            "",
            "| before | after | change | | ± noise | | name |",
            "|--:|--:|--:|--:|--:|---|---|",
        )
        for change in shown:
            sides = (duration(side.time) if side else "" for side in (change.before, change.after))
            told = "" if change.relative is None else percent(change.relative, 1, sign=True)
            noise = "" if not change.noise else duration(change.noise)
            status = "" if change.status == "changed" else change.status
            yield f"| {' | '.join(sides)} | {_signed(change.delta)} | {told} | {noise} | {status} | {escaped(_name(change))} |"
        yield from ("", *_left(own, shown))
    changed = [finding for finding in difference.findings if finding.status != "both"]
    if changed:
        yield from ("", "**Findings**", "")
    for finding in changed:
        yield f"- {finding.status}: {escaped(finding.title)}{_price(finding)}"
    yield from ("", *(f"*{note}*" for note in difference.notes))


def as_json(difference: Difference, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return plain values in the schema that docs/explain/diff.md describes; times in ns."""
    derived = ("delta", "relative", "noise", "certain", "status")
    return {
        "schema": SCHEMA,
        "per": difference.per,
        "steps": dict(zip(("before", "after"), difference.steps, strict=True)),
        "changes": [
            asdict(change) | {name: getattr(change, name) for name in derived}
            for change in difference.changes
        ],
        "findings": [asdict(finding) for finding in difference.findings],
        "run": [asdict(fact) for fact in difference.run],
        "explained": None if difference.explained is None else _explained(difference.explained),
        "conditions": [asdict(verdict) for verdict in verdicts],
        "notes": list(difference.notes),
    }


def _explained(whole: Explanation) -> dict[str, Any]:
    return asdict(whole) | {
        "delta": whole.delta,
        "parts": [asdict(part) | {"delta": part.delta} for part in whole.parts],
    }


def _shown(own: Sequence[Change], rows: int) -> list[Change]:
    """What changed; of steps and GPUs all, since that they stayed the same is the news."""
    told = [change for change in own if change.status != "same" or change.kind in ("step", "gpu")]
    return told[:rows] if rows else told


def _left(own: Sequence[Change], shown: Sequence[Change]) -> Iterator[str]:
    same = sum(change.status == "same" for change in own if change not in shown)
    more = len(own) - len(shown) - same
    told = [f"{same:,} the same, or within their noise"] if same else []
    told += [f"{more:,} more changed (--rows 0 shows all)"] if more else []
    if told:
        yield f"  {'; '.join(told)}"


def _findings(findings: Sequence[FindingChange]) -> Iterator[str]:
    changed = [finding for finding in findings if finding.status != "both"]
    for finding in changed:
        yield f"Finding {finding.status}: {printable(finding.title)}{_price(finding)}"
    both = len(findings) - len(changed)
    if both:
        yield f"{counted(both, 'finding')} in both."
    if findings:
        yield ""


def _price(finding: FindingChange) -> str:
    price = finding.after if finding.status == "appeared" else finding.before
    return "" if price is None else f" (at most {duration(price)})"


def _verdict(verdict: Verdict) -> str:
    return ("FAILED" if verdict.met else "ok") if verdict.judged else "NOT JUDGED"


def _per(difference: Difference, kind: str) -> str:
    return (
        "mean of one"
        if kind == "step"
        else "of the whole run"
        if kind == "gpu" or difference.per == "run"
        else "time in one step"
    )


def _count(change: Change) -> str:
    """The count of each side, once if they are equal."""
    counts = [f"{side.count:.4g}" for side in (change.before, change.after) if side]
    return counts[0] if len(set(counts)) == 1 else " -> ".join(counts)


def _name(change: Change) -> str:
    return printable(change.name if not change.after_name else f"{change.name} -> {change.after_name}")
