"""Times the search for the causes of a million stretches of thread time, on CPU and CUDA reports."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row

STRETCHES = 1_000_000
BUDGET_S = 3.0
_ASK = """
import json, sys, time, resource
import numpy as np, pyarrow as pa
from warplens.cli.light import import_lightly
import_lightly()
from warplens.analysis.cpu import culprits; from warplens.report import open
count, length = int(sys.argv[2]), int(sys.argv[3])
with open(sys.argv[1]) as report:
    chance = np.random.default_rng(1)
    thread = report.table("threads", ["thread"]).column(0).to_numpy()
    start = np.sort(chance.integers(report.origin, report.end - length, count))
    asked = pa.table({"thread": chance.choice(thread, count), "start": start, "end": start + length})
    begin = time.process_time()
    rows = culprits.filled(report, asked).num_rows
    spent = time.process_time() - begin
print(json.dumps({"cpu": spent, "rows": rows, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""
_MAKE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from _cpu_reports import make_cpu_report
from _cuda_reports import make_cuda_report
{"cpu": make_cpu_report, "cuda": make_cuda_report}[sys.argv[2]](Path(sys.argv[3]), int(sys.argv[4]))
"""


def run(quick: bool) -> list[Row]:
    """Time it in a separate process, without opening the report."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        for kind, made, length in (("cuda", 3_160_000, 3_000), ("cpu", 2_000_000, 20_000)):
            path, share = Path(directory) / f"{kind}.warplens", 10 if quick else 1
            subprocess.run(
                [
                    sys.executable,
                    "-c",
                    _MAKE,
                    str(Path(__file__).parent),
                    kind,
                    str(path),
                    str(made // share),
                ],
                check=True,
            )
            ask = [sys.executable, "-c", _ASK, str(path), str(STRETCHES // share), str(length)]
            told = json.loads(subprocess.run(ask, check=True, capture_output=True, text=True).stdout)
            what = f"{STRETCHES // share:,} stretches, {kind}"
            rows.append(
                Row(
                    f"{what}: CPU",
                    told["cpu"],
                    "s",
                    budget=None if quick else BUDGET_S,
                    budget_on="value",
                    note=f"{told['rows']:,} rows",
                )
            )
            rows.append(Row(f"{what}: memory", told["rss"] / 1e9, "GB"))
    return rows
