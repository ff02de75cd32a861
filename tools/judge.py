"""Judges the reports of tests/judged and says how often what is said is true: precision, recall, predicted against won.

usage: PYTHON tools/judge.py [--page]

`--page` writes docs/dev/judged.md. Reports that lie beside the checkout (../shared/data) are left out where they are not there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

import tomllib

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.support.reports.judged import Verdict, cases, compared, source  # noqa: E402

PAGE = ROOT / "docs" / "dev" / "judged.md"
_HEAD = """# What findings are worth

`make judge` asks all rules about {cases} reports and compares what they say with `tests/judged`: a file for each report says what has to
be named, what may be said as well, and why, from the raw rows. Findings of at least medium severity count; those about the same time as
another do not. A third of the reports should be clean; {clean} are.

| | |
|---|--:|
| findings said | {said} |
| of them true (precision) | {precision:.1%} |
| causes to be named | {wanted} |
| of them named (recall) | {recall:.1%} |

The cases were written with the findings in sight, from rows and from runs of the programs without the mistake. Reports that nobody has
seen yet will show less.

## Predicted against won

The same program without its mistake says what was to be won. Programs ran beside others on the same GPU, so that both figures are rough.

| report | rule | predicted | won | ratio |
|---|---|--:|--:|--:|
{rows}

The median error is {error:.0%}.

## Reports

| report | said | true | to be named | named |
|---|--:|--:|--:|--:|
{reports}
"""


def main() -> int:
    """Judge all cases; 1 where something false was said or something is missing."""
    verdicts: list[Verdict] = []
    for path in cases():
        if not source(tomllib.loads(path.read_text(encoding="utf-8"))).exists():
            print(f"{path.stem}: the report is not beside the checkout")
            continue
        with tempfile.TemporaryDirectory() as folder:
            verdict = compared(path, Path(folder))
        verdicts.append(verdict)
        print(f"{path.stem:32} {verdict.true} of {verdict.said} true, {verdict.named} of {verdict.wanted} named", flush=True)
        for wrong in verdict.wrong:
            print(f"    {wrong}")
    page = _page(verdicts)
    if "--page" in sys.argv[1:]:
        PAGE.write_text(page, encoding="utf-8")
    print(page.partition("## Reports")[0])
    return 1 if any(verdict.wrong for verdict in verdicts) else 0


def _page(verdicts: list[Verdict]) -> str:
    said, true = sum(one.said for one in verdicts), sum(one.true for one in verdicts)
    wanted, named = sum(one.wanted for one in verdicts), sum(one.named for one in verdicts)
    won = [(one.case, *row) for one in verdicts for row in one.won]
    return _HEAD.format(
        cases=len(verdicts),
        clean=sum(not one.wanted for one in verdicts),
        said=said,
        precision=true / max(said, 1),
        wanted=wanted,
        recall=named / max(wanted, 1),
        rows="\n".join(
            f"| {case} | {rule} | {expected:.2f} s | {real:.2f} s | {expected / real:.2f} |" for case, rule, expected, real in won
        ),
        error=median(abs(expected / real - 1) for *_, expected, real in won) if won else 0.0,
        reports="\n".join(f"| {one.case} | {one.said} | {one.true} | {one.wanted} | {one.named} |" for one in verdicts),
    )


if __name__ == "__main__":
    sys.exit(main())
