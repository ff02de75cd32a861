"""Each SQL query of the guides and of docs/explain runs on a report; those of docs/explain/sql.md return rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warplens
from warplens.testing.timeline import timeline

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "guide").glob("*.md")), *sorted((DOCS / "explain").glob("*.md"))]
QUESTIONS = [
    pytest.param(f"{path.parent.name}/{path.stem}", text, id=f"{path.parent.name}-{path.stem}-{number}")
    for path in PAGES
    for number, text in enumerate(
        re.findall(r"^```sql\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL), 1
    )
]
PICTURE = """
main:api    |(cudaLaunchKernel#1)(cudaMemcpy#2      )(cudaLaunchKernel#3)
gpu0.7      |      (gemm#1  )     (HtoD#2           )   (gemm#3 )
main        |[step             ][step                                  ]
main        | [load         ]
main:native |(main;step;read   )
main:os     |(read:/data/a )
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> warplens.Report:
    path = tmp_path_factory.mktemp("sql") / "r.warplens"
    timeline(path, PICTURE, tick_ns=30_000)
    return warplens.open(path)


@pytest.mark.parametrize(("guide", "text"), QUESTIONS)
def test_the_sql_of_a_guide_runs(report: warplens.Report, guide: str, text: str) -> None:
    for one in re.split(r";\s*$", text.strip(), flags=re.MULTILINE):
        found = report.sql(one) if one.strip() else None
        assert guide != "explain/sql" or found is None or found.num_rows or "ops" in one


def test_the_page_of_queries_has_ten() -> None:
    assert sum(parameter.values[0] == "explain/sql" for parameter in QUESTIONS) == 10
