"""Programs of every other CPython on the machine: warplens is built, installed and recorded there without dependencies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import warplens
from tests.support.native.native_build import sharing_objects
from tests.support.optional_dependencies import LIB
from tests.support.thorough import THOROUGH

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src"

# Only the binding is another one for each interpreter; compiling it without optimising takes a third of the time.
_LESS = (
    ()
    if THOROUGH
    else (
        "--config-settings=cmake.define.WARPLENS_PARTS=bindings",
        "--config-settings=cmake.build-type=Plain",
    )
)

pytestmark = [pytest.mark.require("other-python", "gcc", "native"), pytest.mark.timeout(600)]

_PROGRAM = """
import sys, threading
import warplens
from warplens import nvtx

assert not {"numpy", "pyarrow", "click"} & sys.modules.keys()

@nvtx.annotate("call", color="green")
def call(n):
    with nvtx.annotate("inner", domain="library", category="io", payload=n):
        nvtx.mark("tick")

with nvtx.annotate("outer"):
    for n in range(3):
        call(n)
    thread = threading.Thread(target=call, args=(3,))
    thread.start()
    thread.join()
nvtx.push_range("pushed")
nvtx.pop_range()
nvtx.end_range(nvtx.start_range("started"))
print("%d.%d" % sys.version_info[:2])
"""

_ITSELF = """
import os, sys
import warplens
from warplens import nvtx

with warplens.record("first"), nvtx.annotate("x"):
    child = os.fork()  # warned of from 3.12 on where there are threads
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
warplens.start("second")  # ended by the end of the program
with nvtx.annotate("y"):
    pass
assert not {"numpy", "pyarrow", "click"} & sys.modules.keys()
"""


def _others() -> list[Any]:
    """Version and path of each; the oldest stands for the others where not everything is tested."""
    listed = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pythons.py"), "--others"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [
        (version, path) for version, _, path in (line.partition(" ") for line in listed.stdout.splitlines())
    ]
    return [
        pytest.param(*one, marks=pytest.mark.exhaustive if number else ()) for number, one in enumerate(found)
    ]


def _run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    ("version", "path"), _others() or [("none", "")], ids=lambda value: value if "/" not in value else ""
)
def test_a_program_of_another_python_is_recorded(version: str, path: str, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    _run(path, "-m", "venv", environment)
    python = environment / "bin" / "python"
    _run(
        python,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        *_LESS,
        "--wheel-dir",
        tmp_path / "wheel",
        ROOT,
        env=sharing_objects(),
    )
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    assert f"-cp{version.replace('.', '')}-" in wheel.name
    _run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    if _LESS:
        site = _run(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()
        shutil.copytree(LIB, Path(site) / "warplens" / "_lib")

    (tmp_path / "program.py").write_text(_PROGRAM)
    warplens_here = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(SRC)!r}); from warplens.cli.main import main; main()",
    ]
    printed = _run(
        *warplens_here, "profile", "--light", "-o", tmp_path / "run", "--", python, "program.py", cwd=tmp_path
    )
    assert printed.splitlines()[0] == version.rstrip("t")

    report = warplens.open(tmp_path / "run.warplens")
    rows = report.sql(
        "SELECT message, style, domain, count(*) FROM nvtx_ranges GROUP BY ALL ORDER BY message"
    ).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("call", "PushPop", None, 4),
        ("inner", "PushPop", "library", 4),
        ("outer", "PushPop", None, 1),
        ("pushed", "PushPop", None, 1),
        ("started", "StartEnd", None, 1),
    ]
    payloads = report.sql(
        "SELECT payload_int FROM nvtx_ranges WHERE message = 'inner' ORDER BY 1"
    ).to_pylist()
    assert [row["payload_int"] for row in payloads] == [0, 1, 2, 3]
    assert report.sql("SELECT message FROM nvtx_marks").to_pylist() == [{"message": "tick"}] * 4

    (tmp_path / "itself.py").write_text(_ITSELF)
    _run(python, "-W", "error", "itself.py", cwd=tmp_path)
    for name, message in (("first", "x"), ("second", "y")):
        with warplens.open(tmp_path / f"{name}.warplens") as report:
            assert report.table("nvtx_ranges").to_pydict()["message"] == [message]
