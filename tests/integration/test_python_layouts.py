"""What the agent knows of CPython's memory: the tables of offsets, and how line tables are read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native_build import NATIVE
from tests.python_running import interpreters, version_of

ROOT = Path(__file__).resolve().parents[2]
TABLES = NATIVE / "agent" / "python" / "layout_tables.inc"
each_python = pytest.mark.parametrize("python", interpreters())
pytestmark = [pytest.mark.require("gcc"), pytest.mark.timeout(300)]


@each_python
def test_the_tables_are_those_of_the_headers(python: str) -> None:
    if version_of(python) > (3, 13):
        pytest.skip("it tells its offsets itself")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "python_offsets.py", "--print", python], capture_output=True, text=True, check=False
    )
    if "CalledProcessError" in done.stderr:
        pytest.skip("its headers are not here")
    assert (done.returncode, done.stderr) == (0, "")
    rows = TABLES.read_text(encoding="utf-8").split("    {.version")
    assert done.stdout.removeprefix("    {.version").rstrip(",\n") in [row.partition("// clang")[0].rstrip(",\n") for row in rows]


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
    sources = [NATIVE / "tests" / "python_lines.cpp", NATIVE / "agent" / "python" / "lines.cpp"]
    subprocess.run(["g++", "-std=c++20", "-O1", f"-I{NATIVE}", f"-I{NATIVE / 'include'}", *sources, "-o", program], check=True)
    return program


@each_python
def test_lines_are_those_that_python_says(python: str, decoder: Path) -> None:
    said = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, check=True).stdout.splitlines()
    codes = [json.loads(line) for line in said]
    assert len(codes) > 500
    version = version_of(python)
    asked = "".join(f"{version[0] << 8 | version[1]} {first} {size} {table or '-'}\n" for first, table, size, _ in codes)
    answers = subprocess.run([decoder], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(codes)
    for (first, _, size, lines), answer in zip(codes, answers, strict=True):
        expected = [0] * (size // 2)
        for start, end, line in lines:
            expected[start // 2 : end // 2] = [line] * ((end - start) // 2)
        assert [int(word) for word in answer.split()] == expected, first


def test_line_tables_that_are_none(decoder: Path) -> None:
    """Whatever bytes there are, they are read to their end, and no further."""
    tables = ["ff" * 300, "80" * 300, "00", "7f7f", "f0ffffffffffffff", "e8", "d8ffff", "a0", "01" * 299, "ff80" * 100]
    asked = "".join(f"{version} 1 64 {table}\n" for version in (0x30A, 0x30B, 0x30E) for table in tables)
    done = subprocess.run([decoder], input=asked, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 30)
