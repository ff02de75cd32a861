"""Programs that were not written for warplens, unmodified: every language, library and age of NVTX, every way to start processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import in_site_packages
from tests.support.programs.launching import environment, warplens
from tests.support.reports.querying import rows
from tests.support.thorough import few

ROOT = Path(__file__).resolve().parents[3]
Row = dict[str, Any]
Target = Callable[..., Path]

pytestmark = pytest.mark.require("native")


def record(folder: Path, *command: str | Path, **variables: str) -> tuple[str, Path]:
    """Run a program under `warplens profile`, with no warplens importable in it; return what it printed and the report."""
    report = folder / "run.warplens"
    alone = ["env", "-u", "PYTHONPATH"]
    done = warplens(
        "profile", "-q", "-f", "-o", report, *alone, *command, cwd=folder, env=environment(**variables)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, report


def diagnostics(report: Path) -> list[str]:
    """The codes of what the report complains about."""
    return [
        code
        for (code,) in rows(report, "SELECT code FROM diagnostics WHERE severity <> 'info' ORDER BY code")
    ]


RANGES = """
    SELECT r.message, r.domain, r.category, r.category_id, r.color, r.payload_int, r.payload_float, r.style, p.message AS inside,
           r.unfinished, r.end_thread IS NOT NULL AS elsewhere
    FROM nvtx_ranges r LEFT JOIN nvtx_ranges p ON p.id = r.parent
    ORDER BY r.start, r.id"""
MARKS = "SELECT message, domain, category, category_id, color, payload_int, payload_float FROM nvtx_marks ORDER BY start"
BLUE, RED, GREEN = 0x0000FF, 0xFF0000, 0x008000


def a_range(message: str | None, **differs: Any) -> tuple[Any, ...]:
    """A row of RANGES: a message and nothing else, apart from what `differs`; `elsewhere`: ended by another thread."""
    row = dict.fromkeys(("domain", "category", "category_id", "color", "payload_int", "payload_float"))
    return (
        message,
        *(
            row | {"style": "PushPop", "inside": None, "unfinished": False, "elsewhere": False} | differs
        ).values(),
    )


def a_mark(message: str | None, **differs: Any) -> tuple[Any, ...]:
    """A row of MARKS, the same way."""
    row = dict.fromkeys(("domain", "category", "category_id", "color", "payload_int", "payload_float"))
    return (message, *(row | differs).values())


SCRIPT = """
import threading
import {library} as nvtx

@nvtx.annotate()
def plain():
    pass

@nvtx.annotate("decorated", color="green", domain="lib", category="kernels", payload=3)
def decorated():
    nvtx.mark("inside", domain="lib", payload=1.5)

with nvtx.annotate("outer", color="red"):
    with nvtx.annotate("inner", color=0x80123456, payload=-7):
        plain()
    decorated()
try:
    with nvtx.annotate("raises"):
        raise KeyError
except KeyError:
    pass
nvtx.push_range("pushed", color="blue", domain="lib", category=12, payload=0.25)
nvtx.pop_range(domain="lib")
started = nvtx.start_range("started", color="red", category="phase")
thread = threading.Thread(target=nvtx.end_range, args=(started,))
thread.start()
thread.join()
nvtx.mark("mark", color="green", category="kernels", payload=2**40)
nvtx.mark("ünïcode 🌍")

domain = nvtx.get_domain("objects")
event = domain.get_event_attributes(message="registered", color="green", category="kind", payload=5)
domain.push_range(event)
event.payload = 6
event.color = "red"
domain.mark(event)
domain.pop_range()
domain.end_range(domain.start_range(domain.get_event_attributes(message="by id", category=domain.get_category_id("kind"))))
nvtx.push_range("never popped")
print("ran")
"""

LIB = {"domain": "lib", "category": "kernels", "category_id": 1, "color": GREEN}
SCRIPT_RANGES = [
    a_range("outer", color=RED),
    a_range("inner", color=0x80123456, payload_int=-7, inside="outer"),
    a_range("plain", color=BLUE, inside="inner"),
    a_range("decorated", **LIB, payload_int=3, inside="outer"),
    a_range("raises", color=BLUE),
    a_range("pushed", domain="lib", category="12", category_id=12, color=BLUE, payload_float=0.25),
    a_range("started", category="phase", category_id=1, color=RED, style="StartEnd", elsewhere=True),
    a_range("registered", domain="objects", category="kind", category_id=1, color=GREEN, payload_int=5),
    a_range("by id", domain="objects", category="kind", category_id=1, color=BLUE, style="StartEnd"),
    a_range("never popped", color=BLUE, unfinished=True),
]
SCRIPT_MARKS = [
    a_mark("inside", domain="lib", color=BLUE, payload_float=1.5),
    a_mark("mark", category="kernels", category_id=2, color=GREEN, payload_int=2**40),
    a_mark("ünïcode 🌍", color=BLUE),
    a_mark("registered", domain="objects", category="kind", category_id=1, color=RED, payload_int=6),
]


@pytest.mark.parametrize(
    "library", [pytest.param("nvtx", marks=pytest.mark.require("nvtx")), "warplens.nvtx"]
)
def test_a_script_of_pypi_nvtx_gives_the_same_with_either_library(library: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(library=library), encoding="utf-8")
    out, report = record(
        tmp_path, *([] if library == "nvtx" else ["env", f"PYTHONPATH={ROOT / 'src'}"]), sys.executable, path
    )
    assert out == "ran\n"
    assert rows(report, RANGES) == SCRIPT_RANGES
    assert rows(report, MARKS) == SCRIPT_MARKS
    assert diagnostics(report) == []


CORE = [
    a_range("outer"),
    a_range("wïde 😀", inside="outer"),
    a_range(
        "registered", domain="my.domain", category="three", category_id=3, color=0xFF00FF00, payload_float=2.5
    ),
    a_range(
        "registered",
        domain="my.domain",
        category="three",
        category_id=3,
        color=0xFF00FF00,
        payload_float=2.5,
        style="StartEnd",
    ),
    a_range("crossed"),
    a_range("float", domain="my.domain", category="7", category_id=7, payload_float=0.5),
    a_range("process", style="StartEnd"),
    a_range("crossing", style="StartEnd", elsewhere=True),
    a_range("in worker"),
    a_range("float", domain="my.domain", category="7", category_id=7, payload_float=0.5),
    a_range("never closed", unfinished=True),
]
CORE_MARKS = [
    a_mark("mark"),
    a_mark("wide mark"),
    a_mark(
        "registered", domain="my.domain", category="three", category_id=3, color=0xFF00FF00, payload_float=2.5
    ),
    a_mark("uint32", category="seven", category_id=7, payload_int=42),
    a_mark("int32", category="seven", category_id=7, payload_int=-42),
    a_mark("int64", category="seven", category_id=7, payload_int=-1234567890123),
    a_mark("float", category="seven", category_id=7, payload_float=0.5),
]
CROSSED = """
    SELECT a.depth, b.depth AS other FROM nvtx_ranges a, nvtx_ranges b
    WHERE a.message = 'crossed' AND b.message = 'float' AND a.start < b.start AND b.start < a."end" AND a."end" < b."end"
"""


@pytest.mark.require("gcc")
@pytest.mark.parametrize(
    "headers", ["PyPI nvidia-nvtx", pytest.param("CUDA 11", marks=pytest.mark.require("cu11"))]
)
def test_a_c_program_with_the_nvtx_headers(headers: str, tmp_path: Path, target: Target) -> None:
    old = in_site_packages("nvidia/nvtx/include") if headers == "CUDA 11" else None
    out, report = record(tmp_path, target("nvtx_core", headers=old))
    assert out == "levels 0 1 1 0 -1\nsame domain 1\ndomain levels 0 0\n"
    assert rows(report, RANGES) == CORE
    assert rows(report, MARKS) == CORE_MARKS
    assert rows(report, "SELECT name FROM threads ORDER BY thread") == [("the main thread",), ("worker",)]
    assert rows(report, CROSSED) == [
        (0, 1)
    ]  # two domains need not nest: what overlaps lies in lanes of its own
    assert diagnostics(report) == []


@pytest.mark.require("gcc", "cu11")
def test_a_program_linked_against_the_library_of_before_nvtx_3(tmp_path: Path, target: Target) -> None:
    library = in_site_packages("nvidia/nvtx/lib/libnvToolsExt.so.1")
    out, report = record(tmp_path, target("legacy", library, f"-Wl,-rpath,{library.parent}"))
    event = {"category": "nine", "category_id": 9, "color": 0xFF112233, "payload_int": 77}
    assert out == "levels 0 1 1 0\n"
    assert rows(report, RANGES) == [
        a_range("old outer"),
        a_range("old event", **event, inside="old outer"),
        a_range("old string", **event | {"category": "9", "domain": "old.domain"}),
        a_range("old process", style="StartEnd", elsewhere=True),
    ]
    assert rows(report, MARKS) == [a_mark("old event", **event)]
    assert ("old thread",) in rows(report, "SELECT name FROM threads")
    assert diagnostics(report) == []


INTEROP = """
import ctypes, sys
try:
    import warplens
    sys.exit("warplens is importable")
except ImportError:
    pass
nvtx = ctypes.CDLL(sys.argv[1])
nvtx.nvtxRangeStartW.restype = ctypes.c_uint64
for number in range(100):
    nvtx.nvtxRangePushA(b"from ctypes")
    nvtx.nvtxRangePushW("größer")
    nvtx.nvtxRangePop()
    nvtx.nvtxRangePop()
nvtx.nvtxMarkA(b"mark")
nvtx.nvtxRangeEnd(ctypes.c_uint64(nvtx.nvtxRangeStartW("started")))
print("%d.%d" % sys.version_info[:2])
"""
COUNTS = (
    "SELECT message, count(*)::INT FROM nvtx_ranges WHERE NOT inherited GROUP BY message ORDER BY message"
)


def other_pythons() -> list[tuple[str, str]]:
    """Version and path of every other CPython of the machine."""
    listed = subprocess.run(
        [sys.executable, ROOT / "tools" / "pythons.py", "--others"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        (version, path) for version, _, path in (line.partition(" ") for line in listed.stdout.splitlines())
    ]


@pytest.mark.require("interop")
@pytest.mark.parametrize(
    ("version", "python"),
    [
        ("{}.{}".format(*sys.version_info), sys.executable),
        *(pytest.param(*other, id=other[0]) for other in other_pythons()),
    ],
)
def test_any_python_that_calls_the_shared_library_of_nvtx_3(
    version: str, python: str, tmp_path: Path
) -> None:
    out, report = record(
        tmp_path, python, "-I", "-S", "-c", INTEROP, in_site_packages("nvidia/*/lib/libnvtx3interop.so*")
    )
    assert out == f"{version.rstrip('t')}\n"
    assert rows(report, COUNTS) == [("from ctypes", 100), ("größer", 100), ("started", 1)]
    assert rows(report, MARKS) == [a_mark("mark")]
    assert diagnostics(report) == []


@pytest.mark.require("nvtx", "other-python")
@pytest.mark.parametrize(
    ("version", "python"),
    [pytest.param(*other, id=other[0]) for other in other_pythons()[:1]] or [("none", "")],
)
def test_pypi_nvtx_in_another_python(version: str, python: str, tmp_path: Path) -> None:
    pip = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--target",
        str(tmp_path / "packages"),
        "--only-binary=:all:",
        "nvtx",
    ]
    installed = subprocess.run(pip, capture_output=True, text=True)
    if "No matching distribution" in installed.stderr or "No module named pip" in installed.stderr:
        pytest.skip(f"Python {version} has no pip, or nvtx no wheel for it")
    assert installed.returncode == 0, installed.stderr
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(library="nvtx"), encoding="utf-8")
    out, report = record(tmp_path, "env", f"PYTHONPATH={tmp_path / 'packages'}", python, "-s", path)
    assert out == "ran\n"
    assert rows(report, RANGES) == SCRIPT_RANGES
    assert rows(report, MARKS) == SCRIPT_MARKS
    assert diagnostics(report) == []


@pytest.mark.require("nvtx")
def test_a_program_without_annotations_under_the_profiler_of_pypi_nvtx(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "def f(n):\n    return n and f(n - 1)\nfor _ in range(10):\n    f(3)\nprint('ran')\n"
    )
    out, report = record(tmp_path, sys.executable, "-m", "nvtx", "plain.py")
    assert out == "ran\n"
    called = rows(
        report,
        "SELECT count(*)::INT, max(depth) - min(depth) FROM nvtx_ranges WHERE message LIKE '%plain.py%(f)'",
    )
    assert called == [(40, 3)]


BY_PRIMARY = "SELECT DISTINCT p.primary FROM nvtx_ranges r JOIN processes p USING (process) WHERE r.message = '{}' AND NOT r.inherited"

POOL = """
import multiprocessing, os, sys
import nvtx

@nvtx.annotate("work", domain="pool")
def work(number):
    with nvtx.annotate("square", payload=number):
        return os.getpid(), number * number

if __name__ == "__main__":
    with nvtx.annotate("main"), multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        done = pool.map(work, range(100), chunksize=5)
        pool.close()
        pool.join()
    print(sum(value for _, value in done))
"""


@pytest.mark.require("nvtx")
@pytest.mark.parametrize("method", few(["spawn", "fork", "forkserver"]))
def test_a_pool_of_processes(method: str, tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    out, report = record(tmp_path, sys.executable, "-W", "ignore::DeprecationWarning", "pool.py", method)
    assert out == "328350\n"
    assert rows(report, COUNTS) == [("main", 1), ("square", 100), ("work", 100)]
    assert rows(
        report, "SELECT list_sort(list(payload_int)) AS l FROM nvtx_ranges WHERE message = 'square'"
    ) == [(list(range(100)),)]
    assert rows(report, BY_PRIMARY.format("square")) == [(False,)]
    assert diagnostics(report) == []


FUTURES = """
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import nvtx

def work(kind):
    with nvtx.annotate(kind):
        pass

if __name__ == "__main__":
    for kind, executor in (("thread", ThreadPoolExecutor), ("process", ProcessPoolExecutor)):
        with nvtx.annotate("with " + kind), executor(2) as pool:
            list(pool.map(work, [kind] * 50))
"""


@pytest.mark.require("nvtx")
def test_executors_of_concurrent_futures(tmp_path: Path) -> None:
    (tmp_path / "futures.py").write_text(FUTURES)
    _, report = record(tmp_path, sys.executable, "-W", "ignore::DeprecationWarning", "futures.py")
    assert rows(report, COUNTS) == [("process", 50), ("thread", 50), ("with process", 1), ("with thread", 1)]
    assert rows(report, BY_PRIMARY.format("process")) == [(False,)]
    assert rows(report, BY_PRIMARY.format("thread")) == [(True,)]
    assert diagnostics(report) == []


FORKED = """
    SELECT p.pid != (SELECT pid FROM processes WHERE "primary") AS child, r.message, r.style, r.inherited, r.unfinished
    FROM nvtx_ranges r JOIN processes p USING (process) ORDER BY p.process, r.start, r.id"""
FORKED_MARKS = """
    SELECT p.pid != (SELECT pid FROM processes WHERE "primary") AS child, m.message, m.domain
    FROM nvtx_marks m JOIN processes p USING (process) ORDER BY p.process, m.start"""
PARENT = [(False, "outer", "PushPop", False, False), (False, "process", "StartEnd", False, False)]
INHERITED = [(True, "outer", "PushPop", True, False), (True, "process", "StartEnd", True, False)]
CHILD = (True, "child", "PushPop", False, False)
REPLACED = [(False, "outer", "PushPop", False, False), (False, "process", "StartEnd", False, True)]


@pytest.mark.require("gcc")
@pytest.mark.parametrize(
    ("mode", "ranges"),
    [
        ("fork", [*PARENT, *INHERITED, CHILD]),
        ("clone", [*PARENT, CHILD]),  # nothing tells the agent what was open
        ("vfork", PARENT),
        ("exec", [*REPLACED, *PARENT, *INHERITED, CHILD]),
    ],
)
def test_processes_that_multiply_in_c(
    mode: str, ranges: list[tuple[Any, ...]], tmp_path: Path, target: Target
) -> None:
    out, report = record(tmp_path, target("nvtx_fork"), mode)
    assert out == "child 0\n"
    assert sorted(rows(report, FORKED)) == sorted(ranges)
    mine = (False, "before the fork", "forked")
    assert rows(report, FORKED_MARKS) == (
        [mine] if mode == "vfork" else [mine, (True, "child mark", None), (True, *mine[1:])]
    )
    assert rows(report, "SELECT count(DISTINCT pid)::INT AS pids FROM processes WHERE recorded") == [
        (1 if mode == "vfork" else 2,)
    ]
    assert diagnostics(report) == []


@pytest.mark.require("gcc")
def test_a_program_that_closes_all_descriptors_keeps_its_files_to_itself(
    tmp_path: Path, target: Target
) -> None:
    out, report = record(tmp_path, target("nvtx_fork"), "closed")
    assert out == "mine 0\n"
    assert rows(report, COUNTS) == [("after close", 100_000), ("outer", 1), ("process", 1)]
    assert diagnostics(report) == []
