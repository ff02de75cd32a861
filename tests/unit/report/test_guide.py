"""The queries of docs/explain/report.md run and return rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warplens.report import open as open_report
from warplens.testing.timeline import timeline

GUIDE = Path(__file__).parents[3] / "docs" / "explain" / "report.md"
QUERIES = re.findall(r"```sql\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
PICTURE = """
    main        |[step                                        ]
    main:api    |  (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )
    gpu0.7      |       (gemm#1   )          (HtoD#2  )
    gpu0:memory |+1048576
"""


def test_the_guide_shows_queries() -> None:
    assert len(QUERIES) > 3


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_query_of_the_guide_answers(query: str, tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", PICTURE, payloads={"step": [{"batch": 1}]})
    with open_report(tmp_path / "run") as report:
        rows = report.sql(query, untrusted=True).to_pylist()
    assert len(rows) == 1
    assert len(rows[0]) > 1
