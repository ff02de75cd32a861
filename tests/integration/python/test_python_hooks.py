"""Hooks in every CPython of this machine, without a launcher: how they get in, and that the program does not notice."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.programs.python_running import (
    GC,
    GIL,
    HOLD,
    IMPORTS,
    PYTHON_EVENTS,
    PythonPrograms,
    interpreters,
    is_free_threaded,
    representatives,
    version_of,
)
from tests.support.reports.python_stacks import PYTHON_SAMPLES

ALL = GC | GIL | IMPORTS | PYTHON_EVENTS
pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]
pythons = pytest.mark.parametrize(
    "python", interpreters() or [sys.executable], ids=lambda path: path.replace("/", "_")
)
some_pythons = pytest.mark.parametrize(
    "python", representatives() or [sys.executable], ids=lambda path: path.replace("/", "_")
)

_COLLECT = "import gc; gc.collect(); print('done')"


@pytest.fixture
def programs(tmp_path: Path) -> PythonPrograms:
    """Runs programs in `tmp_path`."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(_COLLECT)
    (tmp_path / "script.py").write_text(_COLLECT)
    return PythonPrograms(tmp_path)


@pythons
@pytest.mark.parametrize(
    "words",
    [["-c", _COLLECT], ["-I", "-S", "-c", _COLLECT], ["-E", "script.py"], ["-m", "package"], ["package"], []],
    ids=str,
)
def test_gets_in_however_python_is_started(programs: PythonPrograms, python: str, words: list[str]) -> None:
    """Commands, scripts, modules, folders, standard input; with and without site, and environment."""
    run = programs.run([python, *words], ALL, stdin="" if words else _COLLECT)
    assert (run.status, run.stdout) == (0, "done\n"), run.stderr
    assert 2 in [span["value"] for span in run.spans(2)]  # the full collection
    assert "gc" in run.names(3)
    assert bool(run.gil(HOLD)) != is_free_threaded(python)


_LOOKS = """
import sys
before = sorted(sys.modules)
print(before, sys.flags, sys.warnoptions, sys.argv, sys.gettrace(), sys.getprofile())
print(sorted(vars(sys)), sorted(vars(sys.modules["builtins"])), sorted(globals()))
import threading
print(threading.active_count())
"""


@some_pythons
@pytest.mark.parametrize("words", [["-I"], ["-S", "-E"], ["-W", "error"], []], ids=str)
def test_the_program_finds_what_it_would_find(
    programs: PythonPrograms, python: str, words: list[str]
) -> None:
    """Modules, flags, names: all as without us."""
    bare = programs.bare([python, *words, "-c", _LOOKS])
    run = programs.run([python, *words, "-c", _LOOKS], ALL)
    assert (run.status, run.stdout, run.stderr) == (bare.returncode, bare.stdout, bare.stderr)


_FAILS = """
import json, sys
def load():
    import no_such_module
try:
    load()
except ImportError:
    import traceback
    traceback.print_exc()
try:
    json.loads("{")
except ValueError as error:
    print(error, len(traceback.extract_tb(error.__traceback__)) > 1)
open("broken.py", "w").write("1 +")
import broken
"""


@some_pythons
def test_tracebacks_are_the_same(programs: PythonPrograms, python: str) -> None:
    """Those of imports that fail too, in which a Python function of ours would be seen; and the status."""
    bare = programs.bare([python, "-c", _FAILS])
    run = programs.run([python, "-c", _FAILS], ALL)
    assert (run.status, run.stdout, run.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert bare.returncode == 1
    failed = {span.name for span in run.spans(3) if span["value"] == 1}
    assert {"no_such_module", "broken"} <= failed


@some_pythons
def test_the_users_sitecustomize_runs(programs: PythonPrograms, python: str) -> None:
    """Nothing stands in its place."""
    (programs.folder / "sitecustomize.py").write_text("print('mine')")
    run = programs.run([python, "-c", "print('program')"], ALL, PYTHONPATH=str(programs.folder))
    assert run.stdout == "mine\nprogram\n"
    assert "sitecustomize" in run.names(3)


@some_pythons
@pytest.mark.parametrize(
    "status", ["sys.exit(7)", "os._exit(7)", "os.kill(os.getpid(), 9)", "raise SystemExit(7)", "1/0"]
)
def test_ends_as_it_would(programs: PythonPrograms, python: str, status: str) -> None:
    """Whatever its end."""
    code = f"import os, sys, gc; gc.collect(); {status}"
    assert programs.run([python, "-c", code], ALL).status == programs.bare([python, "-c", code]).returncode


@some_pythons
def test_import_times_are_still_told(programs: PythonPrograms, python: str) -> None:
    """`-X importtime` names as many modules as without us, in the same order."""
    command = [python, "-X", "importtime", "-c", "import json"]
    told = [
        [line.rpartition("|")[2] for line in text.splitlines()]
        for text in (programs.bare(command).stderr, programs.run(command, ALL).stderr)
    ]
    assert [name for name in told[1] if name.strip() != "gc"] == told[0]


_REMOTE = """
import os, subprocess, sys, time
open("remote.py", "w").write("import sys; sys.ran = 'ran'")
asking = "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])"
asked = subprocess.run([sys.executable, "-c", asking, str(os.getpid()), "remote.py"], capture_output=True, text=True)
end = time.monotonic() + 20
while asked.returncode == 0 and not hasattr(sys, "ran") and time.monotonic() < end:
    time.sleep(0.01)
print(asked.returncode, getattr(sys, "ran", "not"), sys.is_remote_debug_enabled(), asked.stderr.strip().rpartition("\\n")[2])
"""


@pytest.mark.parametrize("python", [python for python in interpreters() if version_of(python) >= (3, 14)])
@pytest.mark.parametrize("allowed", ["", "1"])
def test_remote_debugging_is_left_alone(programs: PythonPrograms, python: str, allowed: str) -> None:
    """A script of another process runs in the recorded one, where that is not forbidden, and is refused where it is."""
    forbidden = {"PYTHON_DISABLE_REMOTE_DEBUG": allowed} if allowed else {}
    bare = programs.bare([python, "-c", _REMOTE], **forbidden)
    run = programs.run([python, "-c", _REMOTE], ALL | PYTHON_SAMPLES, stdin="", capture=None, **forbidden)
    assert (run.status, run.stdout, run.stderr) == (0, bare.stdout, bare.stderr)
    assert "ran True" in run.stdout or allowed or os.geteuid() != 0


_OTHERS = """
import gc, sys
seen = []
gc.callbacks.append(lambda phase, facts: seen.append(phase))
sys.addaudithook(lambda event, arguments: seen.append(event) if event == "import" else None)
sys.setprofile(lambda frame, event, argument: None)
if sys.version_info >= (3, 12):
    sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "mine")
    sys.monitoring.use_tool_id(sys.monitoring.DEBUGGER_ID, "mine")
    sys.monitoring.use_tool_id(sys.monitoring.COVERAGE_ID, "mine")
gc.collect()
import json
sys.setprofile(None)
print(seen.count("start") > 0, seen.count("stop") > 0, "import" in seen)
"""


@some_pythons
def test_lives_beside_hooks_of_the_program(programs: PythonPrograms, python: str) -> None:
    """Its callbacks, audit hook, profiler and monitoring tools work."""
    run = programs.run([python, "-c", _OTHERS], ALL)
    assert (run.status, run.stdout) == (0, "True True True\n"), run.stderr
    assert run.spans(2)


_CHILDREN = """
import multiprocessing, gc, os, sys
def work(number):
    import decimal
    gc.collect()
    return number
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        process = context.Process(target=work, args=(1,))
        process.start()
        process.join()
        print(method, process.exitcode)
    child = os.fork()
    if child == 0:
        gc.collect()
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pythons
def test_children_are_followed(programs: PythonPrograms, python: str) -> None:
    """Forked, spawned, of a server: each has full collections and holds of its own."""
    (programs.folder / "children.py").write_text(_CHILDREN)
    run = programs.run([python, "-W", "ignore", "children.py"], ALL)
    assert (run.status, run.stdout) == (0, "fork 0\nspawn 0\nforkserver 0\n3\n"), run.stderr
    full = [
        spool
        for spool in run.spools
        if any(span["value"] == 2 and span["domain"] == 2 for span in spool.of("python_span"))
    ]
    held = [spool for spool in run.spools if spool.of("gil")]
    assert len(full) >= 4
    assert len(held) >= 4 or is_free_threaded(python)


_INTERPRETERS = """
import gc, sys
try:
    import _interpreters as interpreters
    make = interpreters.create
    def go(number, code): interpreters.exec(number, code)
except ImportError:
    import _xxsubinterpreters as interpreters
    make = interpreters.create
    def go(number, code): interpreters.run_string(number, code)
number = make()
go(number, "import gc, colorsys; gc.collect()")
interpreters.destroy(number)
gc.collect()
print("done")
"""


@some_pythons
def test_subinterpreters(programs: PythonPrograms, python: str) -> None:
    """Each has hooks of its own."""
    run = programs.run([python, "-c", _INTERPRETERS], ALL)
    assert (run.status, run.stdout) == (0, "done\n"), run.stderr
    assert "colorsys" in run.names(3)
    assert run.notices(14) == []


def test_a_program_without_python(programs: PythonPrograms) -> None:
    """It is left alone."""
    run = programs.run(["/bin/sh", "-c", "echo done; exit 5"], ALL)
    assert (run.status, run.stdout, run.spans(2)) == (5, "done\n", [])
