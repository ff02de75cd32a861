"""Native stacks of a program in C: functions, source lines and callers are those of its source."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launching import environment
from warpline.query import open as open_report

SOURCE = """\
#include <stdint.h>
static volatile uint64_t sink;
__attribute__((noinline)) static uint64_t hot(uint64_t n) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < n; ++i) {
    sum += i * i ^ sum;
  }
  return sum;
}
__attribute__((noinline)) static uint64_t caller(uint64_t n) {
  return hot(n) + 1;
}
int main(void) {
  for (int i = 0; i < 200; ++i) {
    sink += caller(5000000 + i);
  }
  return 0;
}
"""
HOT, CALL = range(3, 10), 11

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("stripped", [False, True])
def test_samples_name_functions_and_lines(tmp_path: Path, stripped: bool) -> None:
    (tmp_path / "hot.c").write_text(SOURCE)
    program = tmp_path / "hot"
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", program, tmp_path / "hot.c"], check=True)
    if stripped:
        subprocess.run(["strip", program], check=True)
    report = tmp_path / "x.warpline"
    command = [sys.executable, "-m", "warpline", "profile", "--sample=process-tree", "-t", "nvtx", "-o", str(report), str(program)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    with open_report(report) as opened:
        if "perf-denied" in opened.table("diagnostics", ["code"]).column("code").to_pylist():
            pytest.skip("perf events are denied here")
        rows = opened.sql(
            """SELECT f.function, f.file, f.line, f.module, g.function AS above, g.line AS above_line, sum(s.count)::BIGINT AS ticks
               FROM samples s JOIN frames f ON f.frame = s.stack LEFT JOIN frames g ON g.frame = f.parent
               WHERE s.kind = 'native' GROUP BY ALL ORDER BY ticks DESC"""
        ).to_pylist()
    ours = [row for row in rows if row["module"] == "hot"]
    assert ours, rows
    if stripped:
        assert all(row["function"].startswith("[hot]+0x") and row["file"] is None for row in ours), ours
        return
    inner = [row for row in ours if row["function"] == "hot"]
    assert sum(row["ticks"] for row in inner) * 2 > sum(row["ticks"] for row in rows), rows
    assert {Path(row["file"]).name for row in inner} == {"hot.c"}
    assert all(row["line"] in HOT for row in inner), inner
    assert any((row["above"], row["above_line"]) == ("caller", CALL) for row in inner), inner
