"""Both exports, read by Perfetto itself: no complaint, the same slices with the same nesting, and arrows from launch to kernel."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.unit.exporters.trace_processor import ask
from warplens import catalog
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = [
    pytest.mark.require("perfetto"),
    pytest.mark.require("perfetto-engine"),
    pytest.mark.require("node"),
]

PICTURE = """
    main          |[step                                              ]  !save
    main          | [load    ]
    main@lib      |      [cross    ]
    main#task     |   {fetch     }
    main~mem      |1   2   3
    main:api      |  (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )(cudaGraphLaunch#3)
    main:api      |    (cuLaunchKernel )
    gpu0.7        |       (gemm#1   )          (HtoD#2  )(memset )  (add#3 )(mul#3 ) !5
    gpu0.7        |          (gemm )
    main:overhead |(Buffer_flush )
    gpu0:memory   |+4096   -4096
    gpu0~SM_Active|0    55.5
    p1/gpu1.3     | (x )
"""
COMPLAINTS = "SELECT name, severity, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')"
SLICES = "SELECT name, ts, dur FROM slice ORDER BY name, ts, dur"
PARENTS = "SELECT s.name, p.name FROM slice s JOIN slice p ON s.parent_id = p.id"
ARROWS = "SELECT a.name, b.name FROM flow JOIN slice a ON slice_out = a.id JOIN slice b ON slice_in = b.id ORDER BY 1, 2"
COUNTERS = (
    "SELECT t.name, c.value FROM counter c JOIN counter_track t ON c.track_id = t.id ORDER BY t.name, c.ts"
)


@pytest.mark.parametrize("kind", ["perfetto", "chrome"])
@pytest.mark.slow
def test_perfetto_reads_what_the_tables_say(kind: str, tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", PICTURE, origin=0)
    report = open_report(tmp_path / "run.warplens")
    unit = catalog.find("exporters.formats", kind)
    out = tmp_path / f"run{unit.constant('SUFFIX')}"
    unit.load().write(report, out)
    complaints, slices, parents, arrows, counters = ask(out, COMPLAINTS, SLICES, PARENTS, ARROWS, COUNTERS)
    assert complaints == []
    wanted: Counter[tuple[Any, ...]] = Counter()
    for table, name in (
        ("nvtx_ranges", "message"),
        ("cuda_api", "name"),
        ("kernels", "name"),
        ("overhead", "kind"),
    ):
        wanted.update(
            (row[name], row["start"], row["end"] - row["start"]) for row in report.table(table).to_pylist()
        )
    others = {"save", "CUDA event", "Memcpy HtoD", "Memset"}
    assert Counter(row for row in slices if row[0] not in others) == wanted
    assert {row[0] for row in slices} >= others
    assert sorted(parents) == [("cuLaunchKernel", "cudaLaunchKernel"), ("load", "step")]
    assert arrows == [
        ("cudaGraphLaunch", "add"),
        ("cudaLaunchKernel", "gemm"),
        ("cudaMemcpyAsync", "Memcpy HtoD"),
    ]
    assert [value for name, value in counters if "SM Active" in name] == [0, 55.5]
    assert [value for name, value in counters if "memory" in name] == [4096, 0]
