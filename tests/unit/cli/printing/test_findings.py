"""What `warplens analyze` prints: text, Markdown, and JSON whose schema programs rely on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from warplens.cli.printing.findings import as_markdown, as_text
from warplens.rules.base import Evidence, Finding, Severity, graded, most
from warplens.rules.judging import Judgement

MS = 1_000_000
ROW = Evidence(
    table="memcpys",
    id=7,
    start=1_002 * MS,
    end=1_005 * MS,
    text="Host-to-Device",
    process=1,
    device=0,
    values={"bytes": 4096},
)
COSTLY = Finding(
    rule="pageable",
    subject="Host-to-Device",
    title="Copies from pageable memory hold up the host",
    cause="3 copies waited.",
    fix="Pin the memory.",
    evidence=(ROW,),
    occurrences=3,
    bound=20 * MS,
    estimate=10 * MS,
    severity="high",
    within=100 * MS,
    link="https://example.org/pinned",
    wrong_when="Does not apply if the copies hide.",
)
FREE = Finding(
    rule="names",
    subject="many",
    title="Many <names>\x1b[31m | here",
    cause="c",
    fix="f",
    evidence=(),
    occurrences=1,
    severity="info",
)


def judgement(*findings: Finding) -> Judgement:
    return Judgement(
        findings,
        ("gpu_gaps",),
        {"gil": "does not contain GIL data.", "gc": "does not contain GIL data."},
        10**9,
        11 * 10**8,
        10**9,
    )


def test_text_says_cost_cause_fix_and_where_to_look() -> None:
    text = "\n".join(as_text(judgement(COSTLY, FREE), 3, 100))
    assert "1. HIGH  Copies from pageable memory" in text
    assert "at most 20.0 ms (20.0 % of 100 ms); expected saving: 10.0 ms; confidence: high" in text
    assert "at  2.00 ms for  3.00 ms  Host-to-Device: bytes 4096  (memcpys 7)" in text
    assert "of 3 in all; --rows" in text
    assert "https://example.org/pinned" in text
    assert "limits    Does not apply if the copies hide." in text
    assert "Checked without findings: gpu_gaps" in text
    assert "Not judged: gil, gc: the report does not contain GIL data." in text


def test_text_keeps_within_the_width_and_shows_no_escapes_of_others() -> None:
    lines = list(as_text(judgement(COSTLY, FREE), 3, 60))
    assert max(map(len, lines)) <= 60 + len("https://example.org/pinned")
    assert "\x1b" not in "".join(lines)


def test_silence_is_said_and_lack_of_data_is_not_silence() -> None:
    text = "\n".join(as_text(judgement(), 3, 0))
    assert text.startswith("Nothing found by 1 rule in 100 ms.")
    assert "Not judged: gil, gc" in text


def test_markdown_escapes_what_comes_from_the_program() -> None:
    text = "\n".join(as_markdown(judgement(COSTLY, FREE), 3, 0))
    assert "| high | Copies from pageable memory hold up the host | 20.0 ms | 10.0 ms | high |" in text
    assert r"Many \<names\>" in text
    assert r"\| here" in text
    assert "| 2.00 ms | 3.00 ms | Host-to-Device: bytes 4096 |" in text


def test_json_counts_from_the_origin() -> None:
    told = json.loads(json.dumps(judgement(COSTLY).as_json()))
    assert told["schema"] == "warplens.findings/1"
    assert (told["begin_ns"], told["span_ns"]) == (0, 100 * MS)
    (finding,) = told["findings"]
    assert (finding["bound_ns"], finding["estimate_ns"], finding["severity"]) == (20 * MS, 10 * MS, "high")
    assert finding["evidence"][0]["start_ns"] == 2 * MS
    assert told["not_judged"][0] == {"rule": "gil", "reason": "does not contain GIL data."}


@pytest.mark.parametrize(
    ("bound", "grade"), [(10, "high"), (9, "medium"), (2, "medium"), (1, "low"), (None, "info")]
)
def test_the_share_of_the_run_grades_a_finding(bound: int | None, grade: Severity) -> None:
    assert (
        graded(
            Finding(
                rule="r", subject="s", title="t", cause="c", fix="f", evidence=(), occurrences=1, bound=bound
            ),
            100,
        )
        == grade
    )


@pytest.mark.parametrize(
    ("estimate", "grade"), [(0, "low"), (1, "low"), (5, "medium"), (50, "high"), (None, "high")]
)
def test_the_saving_grades_a_finding(estimate: int | None, grade: Severity) -> None:
    assert graded(replace(COSTLY, bound=99, estimate=estimate), 100) == grade


def test_without_a_price_it_is_a_remark_unless_the_rule_grades_it() -> None:
    assert (
        graded(Finding(rule="r", subject="s", title="t", cause="c", fix="f", evidence=(), occurrences=1), 100)
        == "info"
    )
    assert (
        graded(
            Finding(
                rule="r",
                subject="s",
                title="t",
                cause="c",
                fix="f",
                evidence=(),
                occurrences=1,
                severity="medium",
            ),
            100,
        )
        == "medium"
    )


def test_an_estimate_above_its_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="not between"):
        Finding(
            rule="r",
            subject="s",
            title="t",
            cause="c",
            fix="f",
            evidence=(),
            occurrences=1,
            bound=1,
            estimate=2,
        )
    with pytest.raises(ValueError, match="needs a bound"):
        Finding(rule="r", subject="s", title="t", cause="c", fix="f", evidence=(), occurrences=1, estimate=2)


def test_most_keeps_the_longest() -> None:
    rows = [
        Evidence(table="kernels", id=index, start=0, end=length, text="k")
        for index, length in enumerate((5, 9, 1))
    ]
    assert [row.id for row in most(rows, 2)] == [1, 0]


def test_a_table_of_all_comes_first_then_as_many_in_detail_as_are_asked_for() -> None:
    lines = list(as_text(judgement(COSTLY, FREE), 3, 100, details=1))
    assert lines[0].split() == ["#", "expected", "at", "most", "finding"]
    assert lines[1].split()[:5] == ["1", "10.0", "ms", "20.0", "ms"]
    assert "Copies from pageable memory" in lines[1]
    assert sum(line.startswith("    fix") for line in lines) == 1
    assert "… and 1 more in the table; --details all explains them." in lines
    assert " #" not in next(iter(as_text(judgement(COSTLY), 3, 100)))


def test_rules_without_their_data_are_one_line_where_no_reasons_are_asked_for() -> None:
    lines = list(as_text(judgement(COSTLY, FREE), 3, 100, reasons=False))
    assert lines[-1] == "Not judged: 2 rules, for lack of GIL data (--why-not: each rule)"


def test_what_findings_above_win_too_is_said() -> None:
    lines = "\n".join(as_text(judgement(replace(COSTLY, shared=4 * MS)), rows=0, width=120))
    assert "findings above save 4.00 ms of it, too" in " ".join(lines.split())
    alone = "\n".join(as_text(judgement(COSTLY), rows=0, width=120))
    assert "findings above" not in alone
