"""The figures that recordings are compared by are those that SQL over their tables gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import warplens
from warplens.analysis.comparison.compare import figures, training_steps
from warplens.report import Selection
from warplens.testing.timeline import timeline

_SUMS = """count(*) AS count, sum(length)::BIGINT AS total, avg(length) AS mean, quantile_disc(length, 0.5)::BIGINT AS p50,
    quantile_disc(length, 0.95)::BIGINT AS p95, max(length)::BIGINT AS max, min(length)::BIGINT AS min, stddev_samp(length) AS deviation"""
_ROWS = """
SELECT 'kernel' AS kind, k.demangled::VARCHAR AS name, k."end" - k."start" AS length, a."start" AS asked
FROM kernels k JOIN cuda_api a ON k.api = a.id
UNION ALL SELECT 'memory', '[CUDA memcpy ' || kind || ']', m."end" - m."start", a."start" FROM memcpys m JOIN cuda_api a ON m.api = a.id
UNION ALL SELECT 'memory', '[CUDA memset]', m."end" - m."start", a."start" FROM memsets m JOIN cuda_api a ON m.api = a.id
UNION ALL SELECT 'api', name, "end" - "start", "start" FROM cuda_api
UNION ALL SELECT 'os', name, "end" - "start", "start" FROM osrt
UNION ALL SELECT 'range', ':' || regexp_replace(message, '[ _#:=-]*[0-9]+$', '#'), "end" - "start", "start" FROM nvtx_ranges
"""
_STEPS = """
SELECT kind, name, count(*) AS steps, avg(total) AS step_mean, var_pop(total) AS step_variance FROM (
  SELECT r.kind, r.name, s."start", sum(length)::BIGINT AS total FROM rows r
  JOIN nvtx_ranges s ON s.message = 'step' AND r.asked >= s."start" AND r.asked < s."end" GROUP BY ALL) GROUP BY ALL"""


def recorded(path: Path, steps: int = 12) -> warplens.Report:
    """Record steps of random kernels, copies, memsets, ranges with numbers and calls of the C library, some work outside of all steps."""
    chance = random.Random(3)
    rows: dict[str, str] = dict.fromkeys(("main", "main ", "main:api", "main:os", "gpu0.7"), "")
    number = 0
    for _ in range(steps):
        begin = max(map(len, rows.values())) + 1
        rows = {name: row.ljust(begin) for name, row in rows.items()}
        for _ in range(chance.randint(1, 4)):
            number += 1
            call, work = chance.choice(
                [
                    ("cudaLaunchKernel", "gemm"),
                    ("cudaLaunchKernel", "softmax"),
                    ("cudaMemcpyAsync", "memcpy:HtoD"),
                    ("cudaMemsetAsync", "memset"),
                ]
            )
            rows["main:api"] += f"({call}#{number})"
            rows["gpu0.7"] = (
                rows["gpu0.7"].ljust(len(rows["main:api"]))
                + f"({work}#{number}{' ' * chance.randint(0, 30)})"
            )
        rows["main "] += f" [batch {number}{' ' * chance.randint(0, 9)}]"
        rows["main:os"] += f"(read{' ' * chance.randint(0, 9)})"
        end = max(
            len(rows["main:api"]), len(rows["main "]), len(rows["main:os"]), begin + 8
        ) - chance.randint(0, 3)
        rows["main"] += f"[step{' ' * (end - begin - 6)}]"
    timeline(path, "\n".join(f"{name} |{row}" for name, row in rows.items()))
    return warplens.open(path)


@pytest.mark.slow
@pytest.mark.parametrize("stepped", [True, False])
def test_figures_are_what_sql_gives(tmp_path: Path, stepped: bool) -> None:
    with recorded(tmp_path / "a.warplens") as report:
        found = training_steps(report, Selection(), None) if stepped else None
        table, launched = figures(report, Selection(), found)
        told = {
            (row["kind"], row["name"]): row for row in table.to_pylist() if row["kind"] not in ("step", "gpu")
        }
        expected = {
            (row["kind"], row["name"]): row
            for row in report.sql(f"SELECT kind, name, {_SUMS} FROM ({_ROWS}) GROUP BY ALL").to_pylist()
        }
        assert told.keys() == expected.keys()
        assert {kind for kind, _ in told} == {"kernel", "memory", "range", "api", "os"}
        for key, row in expected.items():
            assert {name: told[key][name] for name in row} == pytest.approx(row, nan_ok=True), key
        each = (
            {
                (row["kind"], row["name"]): row
                for row in report.sql(f"WITH rows AS ({_ROWS}) {_STEPS}").to_pylist()
            }
            if stepped
            else {}
        )
        for key, row in told.items():
            own = each.get(key, {"steps": 0, "step_mean": 0, "step_variance": 0})
            assert {name: row[name] for name in own} == pytest.approx(own, abs=1e-6), key
        kernels = "SELECT k.demangled::VARCHAR FROM kernels k JOIN cuda_api a ON k.api = a.id"
        inside = ""
        if found is not None:
            step = found.slice(found.num_rows // 2, 1).to_pylist()[0]
            inside = f'WHERE a."start" >= {step["start"]} AND a."start" < {step["end"]}'
        assert launched == report.sql(f'{kernels} {inside} ORDER BY a."start"').column(0).to_pylist()
