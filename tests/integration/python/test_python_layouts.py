"""What the agent knows of CPython's memory: the tables of offsets, and how line tables are read."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.native.native_build import NATIVE
from tests.support.programs.launching import warplens
from tests.support.programs.python_running import interpreters, version_of
from warplens.cli.commands.doctor import command
from warplens.recording.agent.library import Agent
from warplens.report import open as open_report

ROOT = Path(__file__).resolve().parents[3]
TABLES = NATIVE / "agent" / "python" / "memory" / "layout_tables.inc"
each_python = pytest.mark.parametrize("python", interpreters())
pytestmark = [pytest.mark.require("gcc"), pytest.mark.timeout(300)]


@each_python
def test_the_tables_are_those_of_the_headers(python: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "python_offsets.py", "--print", python],
        capture_output=True,
        text=True,
        check=False,
    )
    if "CalledProcessError" in done.stderr:
        pytest.skip("its headers are not here")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in TABLES.read_text(encoding="utf-8")


@pytest.mark.require("native")
@pytest.mark.parametrize(
    "words",
    [("-DVERSION=0x031000f0",), ("-DVERSION=0x030f00f0", '-DCOOKIE="debugger"'), ("-DVERSION=0x030e00f0",)],
    ids=["a version to come", "nothing published", "published nonsense"],
)
def test_a_python_that_is_not_known_is_recorded_without_its_stacks(
    words: tuple[str, ...], target: Target, tmp_path: Path
) -> None:
    program = target("future_python", "-rdynamic", *words)
    done = warplens(
        "profile",
        "-o",
        "x",
        "-t",
        "python,gil",
        "--python-sampling=true",
        "-s",
        "process-tree",
        program,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "done")
    with open_report(tmp_path / "x.warplens") as report:
        told = [row for row in report.table("diagnostics").to_pylist() if row["code"].startswith("python")]
        assert [row["code"] for row in told] == ["python-unknown"]
        assert report.table("samples").num_rows > 0


@pytest.mark.require("native")
def test_doctor_says_that_a_python_is_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Agent, "knows_python", lambda self: False)
    with pytest.raises(SystemExit):
        command.main(["-f", "json"])
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert (checks["python"]["state"], "Python 3." in checks["python"]["text"]) == ("note", True)


@pytest.mark.require("native")
def test_doctor_says_what_is_recorded_without_a_gil(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = sysconfig.get_config_var
    monkeypatch.setattr(
        sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else asked(name)
    )
    with pytest.raises(SystemExit):
        command.main(["-f", "json"])
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["python"]["state"] == "ok"
    assert "free-threaded Python 3." in checks["python"]["text"]


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="doctor says what a free-threaded Python records",
)
@pytest.mark.require("native")
def test_doctor_is_silent_of_a_python_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["-f", "json"])
    assert "python" not in [check["name"] for check in json.loads(capsys.readouterr().out)["checks"]]


# Each code object of some modules: first line, table, and what the interpreter says of it.
_ASK = """
import glob, json, os, sys, sysconfig, types
def walk(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from walk(constant)
folder = sysconfig.get_path("stdlib")
for path in sorted(glob.glob(os.path.join(folder, "*.py")))[::4] + sorted(glob.glob(os.path.join(folder, "asyncio", "*.py"))):
    with open(path, "rb") as file:
        text = file.read()
    try:
        top = compile(text, path, "exec")
    except SyntaxError:
        continue
    for code in walk(top):
        table = code.co_linetable
        lines = [[start, end, line or 0] for start, end, line in code.co_lines() if end > start]
        print(json.dumps([code.co_firstlineno, table.hex(), len(code.co_code), lines]))
"""


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program around the agent's own reading of line tables."""
    program = tmp_path_factory.mktemp("lines") / "lines"
    sources = [
        NATIVE / "tests" / "agent" / "python_lines.cpp",
        NATIVE / "agent" / "python" / "memory" / "lines.cpp",
    ]
    subprocess.run(
        ["g++", "-std=c++20", "-O1", f"-I{NATIVE}", f"-I{NATIVE / 'include'}", *sources, "-o", program],
        check=True,
    )
    return program


@each_python
def test_lines_are_those_that_python_says(python: str, decoder: Path) -> None:
    said = subprocess.run(
        [python, "-I", "-c", _ASK], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    codes = [json.loads(line) for line in said]
    assert len(codes) > 500
    version = version_of(python)
    asked = "".join(
        f"{version[0] << 8 | version[1]} {first} {size} {table or '-'}\n" for first, table, size, _ in codes
    )
    answers = subprocess.run(
        [decoder], input=asked, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(answers) == len(codes)
    for (first, _, size, lines), answer in zip(codes, answers, strict=True):
        expected = [0] * (size // 2)
        for start, end, line in lines:
            expected[start // 2 : end // 2] = [line] * ((end - start) // 2)
        assert [int(word) for word in answer.split()] == expected, first


def test_line_tables_that_are_none(decoder: Path) -> None:
    """Whatever bytes there are, they are read to their end, and no further."""
    tables = [
        "ff" * 300,
        "80" * 300,
        "00",
        "7f7f",
        "f0ffffffffffffff",
        "e8",
        "d8ffff",
        "a0",
        "01" * 299,
        "ff80" * 100,
    ]
    asked = "".join(f"{version} 1 64 {table}\n" for version in (0x30A, 0x30B, 0x30E) for table in tables)
    done = subprocess.run([decoder], input=asked, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 30)
