"""Native stacks of a program in C: functions, source lines and callers are those of its source."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from tests.support.programs.launching import environment, warplens
from tests.support.thorough import few
from warplens.report import open as open_report

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
@pytest.mark.parametrize("stripped", few([True, False]))
def test_samples_name_functions_and_lines(tmp_path: Path, stripped: bool) -> None:
    (tmp_path / "hot.c").write_text(SOURCE)
    program = tmp_path / "hot"
    subprocess.run(
        ["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id", "-o", program, tmp_path / "hot.c"],
        check=True,
    )
    if stripped:
        subprocess.run(["strip", program], check=True)
    report = tmp_path / "x.warplens"
    command = [
        sys.executable,
        "-m",
        "warplens",
        "profile",
        "--light",
        "-q",
        "--sample=process-tree",
        "-t",
        "nvtx",
        "-o",
        str(report),
        str(program),
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=240, check=False
    )
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


EXTENSION = """\
#include <Python.h>
#include <time.h>
static volatile unsigned long sink;
static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
__attribute__((noinline)) static unsigned long multiply(unsigned long n) {
  unsigned long sum = 1;
  for (unsigned long i = 0; i < n; ++i) {
    sum = sum * 31 + i;
  }
  return sum;
}
__attribute__((noinline)) static unsigned long divide(unsigned long n) {
  unsigned long sum = n;
  for (unsigned long i = 1; i < n; ++i) {
    sum += n / i % 7;
  }
  return sum;
}
static PyObject *work(PyObject *self, PyObject *nothing) {
  for (double end = cpu_seconds() + 1.5; cpu_seconds() < end;) {
    sink += multiply(1000000) + divide(100000);
  }
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"work", work, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "hotext", NULL, -1, methods};
PyMODINIT_FUNC PyInit_hotext(void) { return PyModule_Create(&module); }
"""
Places = Counter[tuple[str, int]]


def large(places: Places, share: float) -> set[tuple[str, int]]:
    return {place for place, count in places.items() if count >= share * places.total()}


def by_perf(folder: Path) -> Places:
    """Functions and lines of the extension as perf sees them; the test is skipped where it may not look."""
    command = [
        "perf",
        "record",
        "-q",
        "-e",
        "cpu-clock:u",
        "-F",
        "999",
        "-o",
        "perf.data",
        "--",
        sys.executable,
        "run.py",
    ]
    recorded = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=240
    )
    if recorded.returncode != 0:
        pytest.skip(f"perf record does not work here: {recorded.stderr[-200:]}")
    asking = ["perf", "script", "-i", "perf.data", "-F", "ip,sym,dso,srcline"]
    listed = subprocess.run(
        asking, cwd=folder, env=environment(), capture_output=True, text=True, check=True, timeout=240
    ).stdout
    found = re.findall(r"^\s*[0-9a-f]+ (\w+) \([^)]*hotext[^)]*\)\s+hotext\.c:(\d+)", listed, re.MULTILINE)
    return Counter((function, int(line)) for function, line in found)


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("perf") is None, reason="no gcc or no perf")
def test_lines_of_an_extension_are_those_that_perf_tells(tmp_path: Path) -> None:
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").exists():
        pytest.skip("this Python has no headers")
    (tmp_path / "hotext.c").write_text(EXTENSION)
    (tmp_path / "run.py").write_text("import hotext\nhotext.work()\n")
    words = ["-O1", "-g", "-shared", "-fPIC", f"-I{include}", "-Wl,--build-id", "-o", "hotext.so", "hotext.c"]
    subprocess.run(["gcc", *words], cwd=tmp_path, check=True)
    theirs = by_perf(tmp_path)
    if theirs.total() < 200:
        pytest.skip("perf tells no lines here")
    done = warplens(
        "profile",
        "-q",
        "-o",
        "x",
        "-s",
        "process-tree",
        "--python-sampling=false",
        sys.executable,
        "run.py",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with open_report(tmp_path / "x.warplens") as opened:
        rows = opened.sql(
            """SELECT f.function, f.line, sum(s.count)::BIGINT AS ticks FROM samples s JOIN frames f ON f.frame = s.stack
               WHERE s.kind = 'native' AND f.module LIKE '%hotext%' GROUP BY ALL"""
        ).to_pylist()
    ours: Places = Counter({(row["function"], row["line"]): row["ticks"] for row in rows})
    assert ours.total() > 20
    assert (
        {"multiply", "divide"}
        == {function for function, _ in large(ours, 0.1)}
        == {function for function, _ in large(theirs, 0.1)}
    )
    assert large(ours, 0.1) <= theirs.keys()
    assert large(theirs, 0.3) <= ours.keys()
