"""What a child loads while the program runs is what the end of the recording needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from warplens.testing.timeline import timeline

SUMS_UP = """
import sys
from pathlib import Path
from warplens.cli.light import import_lightly
import_lightly()
from warplens.cli import load_ahead
if sys.argv[2] == "ahead":
    loaded = list(load_ahead.one_by_one())
    assert "warplens.rules.checks.sleeping" in loaded, loaded
before = set(sys.modules)
from warplens.cli.finishing import summed_up
from warplens.storage import manifest
report = Path(sys.argv[1])
(written,) = [manifest.read(path) for path in (report / manifest.DIRECTORY).glob("*.json")]
lines = list(summed_up(report, written))
assert any("Report" in line for line in lines), lines
print(*sorted(name for name in set(sys.modules) - before if name.partition(".")[0] in ("warplens", "duckdb", "pyarrow")))
"""
PICTURE = """
main        |[work                                      ]
main:python |(main;hot:7            )(main;a:9          )
main:os     |  (nanosleep<idle       )  (read<idle      )
"""
TICK_NS = 50_000_000


def _loaded_at_the_end(report: Path, how: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SUMS_UP, report, how], check=True, capture_output=True, text=True
    )
    return done.stdout.split()


def test_loading_ahead_leaves_no_module_for_the_end(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    timeline(report, PICTURE, tick_ns=TICK_NS)
    assert "duckdb" in _loaded_at_the_end(report, "not")
    assert _loaded_at_the_end(report, "ahead") == []


SHORT_RUN = """
import sys
from warplens.cli import prepared_child
prepared_child._load()
print(*sorted(sys.modules))
"""


def test_the_child_of_a_short_run_loads_the_converter_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", SHORT_RUN], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert {"warplens.convert.finish", "warplens.convert.small_processes", "pyarrow.parquet"} <= loaded
    slow = {"duckdb", "pyarrow.compute", "numpy.ma", "concurrent.futures", "click", "pyarrow._s3fs"}
    ours = {"warplens.convert.process_tables", "warplens.timeline.index.building", "warplens.catalog"}
    assert not loaded & (slow | ours)
