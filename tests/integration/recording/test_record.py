"""Programs that record themselves: their reports are those of the launcher, and nothing of it harms them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs.launching import codes, environment, info, warplens
from tests.support.reports.querying import rows

pytestmark = pytest.mark.require("native")


def run(
    folder: Path,
    text: str,
    *words: str,
    code: int = 0,
    said: str | None = "",
    name: str = "p.py",
    **variables: str,
) -> str:
    """Run a Python program that must end with `code` and say `said` on stderr (None: whatever); return what it printed."""
    (folder / name).write_text(
        "import os, sys, time\nimport warplens\nfrom warplens import nvtx\n" + text, encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, name, *words],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if said is not None:
        assert done.stderr == said
    return done.stdout


def messages(report: Path) -> list[str]:
    return [name for (name,) in rows(report, "SELECT message FROM nvtx_ranges ORDER BY start, id")]


WORK = """
import asyncio, multiprocessing, subprocess, threading

def leaf(name):
    with nvtx.annotate(name, color="red", domain="lib", category="io", payload=7):
        nvtx.mark("mark in " + name, payload=2.5)

async def step(name):
    with nvtx.annotate(name):
        await asyncio.sleep(0.001)

async def steps():
    await asyncio.gather(step("task a"), step("task b"))

def work():
    with nvtx.annotate("outer"):
        asyncio.run(steps())
        counter = nvtx.get_domain("lib").get_counter("loss", float)
        for number in range(3):
            counter.sample(number / 2)
        nvtx.mark("list", payload=[1, 2, 3])
        for number in range(10):
            with nvtx.annotate("inner", category=3):
                pass
        started = nvtx.start_range("started", color="green")
        thread = threading.Thread(target=leaf, args=("in thread",), name="helper")
        thread.start()
        thread.join()
        nvtx.end_range(started)
        for method in ("fork", "spawn"):
            child = multiprocessing.get_context(method).Process(target=leaf, args=("in " + method,))
            child.start()
            child.join()
        text = "from warplens import nvtx\\nwith nvtx.annotate('in program'): pass"
        subprocess.run([sys.executable, "-c", text], check=True)

if __name__ == "__main__":
    if sys.argv[1:] == ["self"]:
        with warplens.record("self"):
            work()
    else:
        work()
"""

RANGES = """
SELECT r.message, r.domain, r.category, r.category_id, r.color, r.payload_int, r.payload_float, r.style, r.depth, r.unfinished, r.inherited,
    up.message AS parent, t.name AS thread
FROM nvtx_ranges r JOIN threads t USING (thread) LEFT JOIN nvtx_ranges up ON r.parent = up.id ORDER BY ALL"""
MARKS = "SELECT message, domain, category, color, payload_int, payload_float FROM nvtx_marks ORDER BY ALL"
PROCESSES = """
SELECT a."primary", a.exited, up."primary" AS parent_is_primary, a.executable, a.host, a.rank,
    (SELECT count(*) FROM nvtx_ranges r WHERE r.process = a.process) AS ranges
FROM processes a LEFT JOIN processes up ON a.parent = up.process WHERE a.recorded ORDER BY ALL"""
THREADS = "SELECT count(*), count(DISTINCT process) FROM threads"
TASKS = """
SELECT t.library, (SELECT string_agg(r.message) FROM nvtx_ranges r WHERE r.task = t.task) AS ranges FROM tasks t ORDER BY ALL"""
COUNTERS = """
SELECT c.name, c.domain, coalesce(s.value_float, s.value_int) AS value
FROM nvtx_counters c JOIN nvtx_counter_samples s USING (counter) ORDER BY ALL"""
REST = "SELECT os, kernel, machine, cpu, cpus, memory FROM targets"


@pytest.mark.parametrize("sql", [RANGES, MARKS, PROCESSES, THREADS, TASKS, COUNTERS, REST])
def test_the_report_is_the_one_of_the_launcher(sql: str, both: Path) -> None:
    launched, itself = rows(both / "launched.warplens", sql), rows(both / "self.warplens", sql)
    assert launched == itself
    assert launched


def test_only_the_exit_status_is_unknown(both: Path) -> None:
    launched, itself = info(both / "launched.warplens"), info(both / "self.warplens")
    (a,), (b,) = launched["parts"], itself["parts"]
    for name in ("host", "boot_id", "job", "clock", "warplens"):
        assert a[name] == b[name]
    assert (a["exit_status"], b["exit_status"]) == (0, None)
    assert b["command"][1:] == ["p.py", "self"]
    assert a["sources"].keys() == b["sources"].keys() == {"cuda", "nvtx"}
    assert b["sources"]["nvtx"]["cost_ns"] > 0
    # Clocks are read once a second, and a launcher alone knows of processes that say nothing.
    steady = [
        {name: rows for name, rows in report["tables"].items() if name not in ("clocks", "processes")}
        for report in (launched, itself)
    ]
    assert steady[0] == steady[1]
    assert steady[0]["payloads"] == 1
    assert launched["diagnostics"] == itself["diagnostics"] == []
    assert sorted(path.name for path in (both / "self.warplens").iterdir()) == ["manifest.d", "tables"]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reports of one program, launched and by itself."""
    folder = tmp_path_factory.mktemp("both")
    run(folder, WORK, "self")
    done = warplens("profile", "-q", "-o", "launched", sys.executable, "p.py", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.mark.require("nvtx")
def test_a_library_that_comes_too_late_is_named(tmp_path: Path) -> None:
    text = """
import nvtx as peer
peer.mark("too early")
with warplens.record("x") as recording:
    assert recording.recording and recording.silent_libraries == ()
    with nvtx.annotate("ours"), peer.annotate("theirs"):
        pass
names = {library.name for library in recording.silent_libraries}
assert {"nvtx._lib.lib"} <= names and "warplens.nvtx._binding" not in names, names
assert all(os.path.exists(library.path) for library in recording.silent_libraries)
assert [library.name for library in recording.attached_libraries] == ["warplens.nvtx._binding"]
assert recording.wait()
"""
    (tmp_path / "p.py").write_text(
        "import os, sys, time\nimport warplens\nfrom warplens import nvtx\n" + text
    )
    done = subprocess.run(
        [sys.executable, "p.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("warplens: x.warplens: ")
    assert "not heard: nvtx._lib." in done.stderr
    assert done.stderr.count("\n") == 1
    assert messages(tmp_path / "x.warplens") == ["ours"]
    told = [row for row in info(tmp_path / "x.warplens")["diagnostics"] if row["code"] == "late-library"]
    (row,) = [row for row in told if row["message"].startswith("nvtx._lib.lib ")]
    assert row["severity"] == "warning"
    assert "warplens.prepare() before nvtx is imported" in row["message"]


@pytest.mark.require("nvtx")
def test_libraries_that_stay_silent_are_told_of_once(tmp_path: Path) -> None:
    text = """
import nvtx as peer
peer.mark("too early")
for name in ("x", "y"):
    with warplens.record(name, wait=True) as recording:
        nvtx.mark("m")
    assert "nvtx._lib.lib" in {library.name for library in recording.silent_libraries}
"""
    (tmp_path / "p.py").write_text("import warplens\nfrom warplens import nvtx\n" + text)
    done = subprocess.run(
        [sys.executable, "p.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("not heard") == 1
    assert any(row["code"] == "late-library" for row in info(tmp_path / "y.warplens")["diagnostics"])


def test_a_muted_binding_does_not_come_too_late(tmp_path: Path) -> None:
    text = """
with warplens.record("x", wait=True) as recording:
    nvtx.mark("m")
assert "warplens.nvtx._binding" not in {library.name for library in recording.silent_libraries}
"""
    run(tmp_path, text, said=None, NVTX_DISABLE="1")


@pytest.mark.require("nvtx")
def test_a_prepared_program_is_heard_whole(tmp_path: Path) -> None:
    text = """
loaded = warplens.prepare()
assert any("python" in path for path in loaded), loaded
assert os.environ["NVTX_INJECTION64_PATH"].endswith("libwarplens_agent.so") and "WARPLENS_SPOOL" not in os.environ
import nvtx as peer
peer.mark("before")
with warplens.record("x") as recording:
    with nvtx.annotate("ours"), peer.annotate("theirs"):
        pass
peer.mark("after")
assert recording.silent_libraries == (), recording.silent_libraries
assert {"nvtx._lib.lib", "warplens.nvtx._binding"} <= {library.name for library in recording.attached_libraries}
assert os.environ["NVTX_INJECTION64_PATH"].endswith("libwarplens_agent.so") and "WARPLENS_SPOOL" not in os.environ
"""
    run(tmp_path, text)
    assert messages(tmp_path / "x.warplens") == ["ours", "theirs"]
    assert rows(tmp_path / "x.warplens", "SELECT message FROM nvtx_marks") == []


def test_ranges_outside_of_the_block_are_not_recorded(tmp_path: Path) -> None:
    text = """
@nvtx.annotate("function")
def function(): pass
for name in ("first", "second"):
    function()
    nvtx.push_range("open " + name)
    with warplens.record(name):
        function()
        with nvtx.annotate(name): pass
        nvtx.push_range("still open")
    nvtx.pop_range()
    nvtx.pop_range()
    function()
"""
    run(tmp_path, text)
    for name in ("first", "second"):
        assert messages(tmp_path / f"{name}.warplens") == ["function", name, "still open"]
        assert rows(tmp_path / f"{name}.warplens", "SELECT message FROM nvtx_ranges WHERE unfinished") == [
            ("still open",)
        ]
        assert codes(tmp_path / f"{name}.warplens") == []


def test_start_and_stop_from_any_thread(tmp_path: Path) -> None:
    text = """
import threading
def within(function, *words):
    got = []
    thread = threading.Thread(target=lambda: got.append(function(*words)))
    thread.start()
    thread.join()
    return got[0]
for name in ("a", "b"):
    began = within(warplens.start, name)
    with nvtx.annotate(name): pass
    ended = within(warplens.stop)
    assert began is ended and not began.recording
    assert warplens.stop() is None
with nvtx.annotate("outside"): pass
"""
    run(tmp_path, text)
    for name in ("a", "b"):
        assert messages(tmp_path / f"{name}.warplens") == [name]


def test_two_threads_that_start_at_once_make_one_report(tmp_path: Path) -> None:
    text = """
import threading
gate, made = threading.Barrier(4), []
def go(number):
    gate.wait()
    made.append(warplens.start(f"x{number}"))
threads = [threading.Thread(target=go, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with nvtx.annotate("once"): pass
assert sum(recording.recording for recording in made) == 1 and len({recording.path for recording in made}) == 1
print(warplens.stop().path.name)
"""
    (tmp_path / "p.py").write_text("import warplens\nfrom warplens import nvtx\n" + text)
    done = subprocess.run(
        [sys.executable, "p.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is recorded already") == done.stderr.count("\n") == 3
    assert [path.name for path in tmp_path.glob("*.warplens")] == [done.stdout.strip()]
    assert messages(tmp_path / done.stdout.strip()) == ["once"]


def test_names_are_those_of_the_launcher(tmp_path: Path) -> None:
    text = """
import pathlib
for output in (None, None, "ein Ordner/läuft 日本", pathlib.Path("run-%q{RANK}-%n"), "y.nsys-rep"):
    with warplens.record(output) as recording:
        nvtx.mark("x")
    print(recording.path.relative_to(os.getcwd()))
"""
    printed = run(tmp_path, text, RANK="3", PYTHONUTF8="1")
    names = [
        "report1.warplens",
        "report2.warplens",
        "ein Ordner/läuft 日本.warplens",
        "run-3-1.warplens",
        "y.warplens",
    ]
    assert printed.splitlines() == names
    for name in names:
        assert info(tmp_path / name)["tables"]["nvtx_marks"] == 1


def test_a_program_in_a_folder_with_spaces_records_there(tmp_path: Path) -> None:
    folder = tmp_path / "mein Ordner ü"
    folder.mkdir()
    run(
        folder,
        "with warplens.record('x y', spool_dir='spöol dir'), nvtx.annotate('größe'): pass",
        name="mein Prögramm.py",
    )
    assert messages(folder / "x y.warplens") == ["größe"]
    assert not list((folder / "spöol dir").iterdir())


def test_an_existing_report_is_refused_before_the_block_unless_forced(tmp_path: Path) -> None:
    text = """
for number in range(2):
    try:
        with warplens.record("x", force=number == 5): nvtx.mark("x")
    except warplens.ReportError as error:
        print(error)
        assert number == 1 and not warplens.stop() and "WARPLENS_SPOOL" not in os.environ
for number in range(5):
    with warplens.record("x", force=True): nvtx.mark(str(number))
"""
    said = run(tmp_path, text)
    assert "exists already" in said
    assert "output=" in said
    assert "force=True" in said
    assert rows(tmp_path / "x.warplens", "SELECT message FROM nvtx_marks") == [("4",)]
    assert [path.name for path in tmp_path.iterdir()] == ["p.py", "x.warplens"] or len(
        list(tmp_path.iterdir())
    ) == 2


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        ("'%q{NOT_SET}'", "UsageError", "NOT_SET is not set"),
        ("'/proc/x'", "ReportError", "Cannot create the report"),
        ("'x', spool_dir='/proc'", "CaptureError", "spool_dir= /proc"),
        ("'file/x'", "ReportError", "not a directory"),
    ],
)
def test_a_recording_that_cannot_begin_raises_and_leaves_no_file(
    words: str, kind: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    text = f"""
before = dict(os.environ)
try:
    with warplens.record({words}):
        raise SystemExit("not reached")
except warplens.{kind} as error:
    print(error)
assert dict(os.environ) == before
with warplens.record("works"), nvtx.annotate("x"): pass
"""
    assert said in run(tmp_path, text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "p.py", "works.warplens"]
    assert messages(tmp_path / "works.warplens") == ["x"]


def test_the_environment_is_put_back(tmp_path: Path) -> None:
    text = """
os.environ["NVTX_INJECTION64_PATH"] = "/no/such/tool.so"
before = dict(os.environ)
with warplens.record("a"):
    assert os.environ["NVTX_INJECTION64_PATH"].endswith("agent.so") and os.environ["WARPLENS_NVTX_CHAIN"] == "/no/such/tool.so"
    os.environ["MINE"] = "1"
assert dict(os.environ) == before | {"MINE": "1"}
with warplens.record("b"):
    os.environ["NVTX_INJECTION64_PATH"] = "/another.so"
    del os.environ["WARPLENS_SPOOL"]
assert os.environ["NVTX_INJECTION64_PATH"] == "/another.so" and "WARPLENS_SPOOL" not in os.environ
os.environ.clear()
with warplens.record("c"):
    pass
assert not os.environ
"""
    run(tmp_path, text, said=None)


def test_a_program_under_the_launcher_makes_no_second_report(tmp_path: Path) -> None:
    text = """
warplens.prepare()
with warplens.record("inner") as recording:
    with nvtx.annotate("x"): pass
assert recording.path is None and not recording.recording and not recording.wait() and recording.silent_libraries == ()
with nvtx.annotate("y"): pass
"""
    (tmp_path / "p.py").write_text("import warplens\nfrom warplens import nvtx\n" + text)
    done = warplens("profile", "-q", "-o", "outer", sys.executable, "p.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "recorded already" in done.stderr
    assert [path.name for path in tmp_path.glob("*.warplens")] == ["outer.warplens"]
    assert messages(tmp_path / "outer.warplens") == ["x", "y"]


def test_a_block_in_a_block_is_part_of_the_outer(tmp_path: Path) -> None:
    text = """
with warplens.record("outer") as outer:
    with warplens.record("inner") as inner, nvtx.annotate("in"): pass
    assert inner.path == outer.path and outer.recording
    with nvtx.annotate("out"): pass
"""
    run(tmp_path, text, said=None)
    assert [path.name for path in tmp_path.glob("*.warplens")] == ["outer.warplens"]
    assert messages(tmp_path / "outer.warplens") == ["in", "out"]


def test_a_recording_is_made_once(tmp_path: Path) -> None:
    text = """
recording = warplens.record("x")
for number in range(2):
    try:
        with recording, nvtx.annotate("x"): pass
    except warplens.UsageError as error:
        print(error)
assert recording.wait()
"""
    assert "call record() or start()" in run(tmp_path, text)
    assert messages(tmp_path / "x.warplens") == ["x"]


def test_a_child_that_dies_is_told_and_the_report_waits(tmp_path: Path) -> None:
    (tmp_path / "lack").mkdir()
    (tmp_path / "lack" / "pyarrow.py").write_text("import os\nos.kill(os.getpid(), 9)")
    block = "with warplens.record('x', wait=True) as r, nvtx.annotate('x'): pass\nassert not r.wait()\n"
    text = f"import warplens\nfrom warplens import nvtx\n{block}"
    (tmp_path / "p.py").write_text(text)
    env = environment()
    env["PYTHONPATH"] = f"{tmp_path / 'lack'}:{env['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "p.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "ended (SIGKILL, which the system sends if memory is short). Nothing is lost" in done.stderr
    assert messages(tmp_path / "x.warplens") == ["x"]


def test_without_the_packages_the_report_waits(tmp_path: Path) -> None:
    (tmp_path / "lack").mkdir()
    (tmp_path / "lack" / "pyarrow.py").write_text("raise ModuleNotFoundError('no', name='pyarrow')")
    (tmp_path / "p.py").write_text(
        "import warplens\nfrom warplens import nvtx\nwith warplens.record('x'), nvtx.annotate('x'): pass\n"
    )
    env = environment()
    env["PYTHONPATH"] = f"{tmp_path / 'lack'}:{env['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "p.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "pyarrow is not installed here" in done.stderr
    assert "warplens info --trust" in done.stderr
    (tmp_path / "x.warplens").rename(tmp_path / "carried.warplens")
    assert messages(tmp_path / "carried.warplens") == ["x"]


@pytest.mark.parametrize(
    "change", ["sys.executable = ''", "sys.frozen = True", "sys.executable = '/no/such/python'"]
)
def test_without_an_interpreter_for_the_child_the_report_waits(change: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        f"import sys, warplens\nfrom warplens import nvtx\n{change}\nwith warplens.record('x', "
        "wait=True), nvtx.annotate('x'): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "p.py"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "x.warplens is not finished" in done.stderr
    assert "Nothing is lost" in done.stderr
    assert messages(tmp_path / "x.warplens") == ["x"]


def test_the_report_may_be_opened_right_behind_the_block(tmp_path: Path) -> None:
    """Whoever comes first waits for the child: what only it knows is in the report."""
    text = """
import json
with warplens.record("x") as recording, nvtx.annotate("x"): pass
with warplens.open(recording.path) as report:
    print(report.sql("SELECT count(*)::INT AS n FROM nvtx_ranges").to_pylist()[0]["n"])
    print(report.manifests[0].sources["nvtx"]["cost_ns"] > 0)
"""
    assert run(tmp_path, text).split() == ["1", "True"]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another NVTX tool, which writes what it hears to a log."""
    path = tmp_path_factory.mktemp("tool") / "libtool.so"
    source = Path(__file__).resolve().parents[2] / "targets" / "nvtx" / "nvtx_tool.c"
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(path), "-lpthread"], check=True)
    return path


@pytest.mark.require("gcc")
def test_a_tool_that_listens_already_is_named(tool: Path, tmp_path: Path) -> None:
    text = """
nvtx.mark("first")
with warplens.record("x"), nvtx.annotate("x"): pass
"""
    run(tmp_path, text, said=None, NVTX_INJECTION64_PATH=str(tool), NVTX_TOOL_LOG=str(tmp_path / "log"))
    report = info(tmp_path / "x.warplens")
    assert "other-tool" in [row["code"] for row in report["diagnostics"]]
    assert report["tables"]["nvtx_ranges"] == 0


@pytest.mark.require("gcc")
@pytest.mark.parametrize("prepare", ["", "warplens.prepare()"])
def test_another_tool_hears_the_same(prepare: str, tool: Path, tmp_path: Path) -> None:
    text = f"""
{prepare}
with warplens.record("x"), nvtx.annotate("both"): pass
nvtx.mark("outside")
"""
    run(tmp_path, text, NVTX_INJECTION64_PATH=str(tool), NVTX_TOOL_LOG=str(tmp_path / "log"))
    assert messages(tmp_path / "x.warplens") == ["both"]
    heard = (tmp_path / "log").read_text()
    assert b"both".hex() in heard
    assert b"outside".hex() in heard


@pytest.mark.require("gcc")
def test_another_tool_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    text = "with warplens.record('x'), nvtx.annotate('x'): pass"
    run(tmp_path, text, said=None, NVTX_INJECTION64_PATH="/no/such/tool.so")
    report = info(tmp_path / "x.warplens")
    assert [row["code"] for row in report["diagnostics"]] == ["nvtx-tool"]
    assert "/no/such/tool.so" in report["diagnostics"][0]["message"]
    assert report["tables"]["nvtx_ranges"] == 1


def test_a_program_that_never_annotates_is_told(tmp_path: Path) -> None:
    run(tmp_path, "with warplens.record('x'): pass", said=None)
    assert codes(tmp_path / "x.warplens") == ["no-nvtx"]


def test_names_of_an_earlier_recording_are_nothing_recorded(tmp_path: Path) -> None:
    text = """
for name in ("first", "idle", "open"):
    with warplens.record(name):
        if name == "first":
            with nvtx.annotate("range", domain="domain", category="category", payload={"a": 1}): pass
        if name == "open":
            nvtx.push_range("stays open")
"""
    run(tmp_path, text, said=None)
    assert [codes(tmp_path / f"{name}.warplens") for name in ("first", "idle", "open")] == [
        [],
        ["no-nvtx"],
        [],
    ]


Tmpfs = Callable[[str], Path]


@pytest.mark.require("tmpfs")
def test_a_full_disk_costs_ranges_which_are_counted(tmp_path: Path, tmpfs: Tmpfs) -> None:
    text = f"""
with warplens.record("x", spool_dir={str(tmpfs("size=4m"))!r}, wait=True) as recording:
    for _ in range(200_000):
        with nvtx.annotate("x"): pass
assert recording.wait()
"""
    run(tmp_path, text, said=None)
    kept = rows(tmp_path / "x.warplens", "SELECT count(*)::INT FROM nvtx_ranges")[0][0]
    sql = "SELECT coalesce(sum(count), 0)::INT FROM diagnostics WHERE code = 'dropped-records'"
    assert 0 < kept < 200_000
    assert kept + rows(tmp_path / "x.warplens", sql)[0][0] == 200_000


@pytest.mark.require("tmpfs")
def test_no_room_for_the_report_leaves_it_for_later(tmp_path: Path, tmpfs: Tmpfs) -> None:
    disk = tmpfs("size=2m")
    text = f"""
with warplens.record({str(disk / "x")!r}, spool_dir="spool", wait=True) as recording, nvtx.annotate("x"):
    with open({str(disk / "fill")!r}, "wb", 0) as file:
        try:
            while True: file.write(bytes(4096))
        except OSError: pass
assert not recording.wait()
"""
    run(tmp_path, text, said=None)
    (disk / "fill").unlink()
    assert messages(disk / "x.warplens") == ["x"]


def test_an_ordinary_user_can_record(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become another user")
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env"]
    paths = os.pathsep.join(
        [environment()["PYTHONPATH"], *(path for path in sys.path if path.endswith("site-packages"))]
    )
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    if subprocess.run(
        [*nobody, python, "-c", "import warplens, pyarrow"], env=env, check=False, capture_output=True
    ).returncode:
        pytest.skip("another user can run no such Python here")
    place = Path(tempfile.mkdtemp())  # not below tmp_path, which only we may enter
    place.chmod(0o777)
    try:
        program = (
            "import warplens\nfrom warplens import nvtx\nwith warplens.record('x', wait=True), "
            "nvtx.annotate('x'): pass"
        )
        done = subprocess.run(
            [*nobody, python, "-c", program], cwd=place, env=env, check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert messages(place / "x.warplens") == ["x"]
        place.chmod(0o755)
        program = program.replace("'x', wait", "'y', wait")
        done = subprocess.run(
            [*nobody, python, "-c", program], cwd=place, env=env, check=False, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "Cannot create the report" in done.stderr
    finally:
        shutil.rmtree(place)
