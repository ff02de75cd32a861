"""`python -m warplens.nvtx` runs a program as python does, with every call annotated."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.nvtx.conftest import decode, environment

pytestmark = [pytest.mark.slow, pytest.mark.require("native"), pytest.mark.require("gcc")]

PROGRAM = """
import sys
import sibling
def run():
    print(sys.argv[1:], sys.path[0], __name__, __file__, sibling.value())
    if "--boom" in sys.argv:
        raise ValueError("boom")
    if "--exit" in sys.argv:
        sys.exit(7)
    if "--text" in sys.argv:
        sys.exit("a text")
    if "--interrupt" in sys.argv:
        raise KeyboardInterrupt
if __name__ == "__main__":
    run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program, a module beside it, and a working directory that is another one."""
    where = tmp_path / "programs"
    where.mkdir()
    (where / "program.py").write_text(PROGRAM)
    (where / "sibling.py").write_text("def value(): return 5\n")
    (where / "broken.py").write_text("x = (\n")
    (where / "package").mkdir()
    (where / "package" / "__init__.py").write_text("")
    (where / "package" / "__main__.py").write_text("import sys\nprint(__package__, sys.argv[1:])\n")
    with zipfile.ZipFile(where / "packed.zip", "w") as packed:
        packed.writestr("__main__.py", "import sys\nprint('zip', sys.argv, sys.path[0])\n")
    return where


def run(folder: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["program.py"],
        ["program.py", "--linenos", "-m", "--help", "-x", "a b"],
        ["../programs/program.py", "--boom"],
        ["program.py", "--exit"],
        ["program.py", "--text"],
        ["program.py", "--interrupt"],
        ["broken.py"],
        ["missing.py"],
        ["-m", "program", "--boom", "--linenos"],
        ["-mprogram", "--exit"],
        ["-m", "package", "-m", "x"],
        ["-m", "package.missing"],
        ["-m", "missing"],
        ["package", "arg"],
        ["packed.zip", "arg"],
        ["sub"],
    ],
    ids=" ".join,
)
def test_the_command_prints_and_exits_like_python(folder: Path, arguments: list[str]) -> None:
    plain, ours = run(folder, *arguments), run(folder, "-m", "warplens.nvtx", *arguments)
    assert (ours.returncode, ours.stdout, ours.stderr) == (plain.returncode, plain.stdout, plain.stderr)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "a script or -m module is missing"),
        (["-m"], "-m needs the name"),
        (["--wrong"], "no option --wrong"),
        (["--linenos"], "missing"),
    ],
    ids=str,
)
def test_a_wrong_command_prints_the_usage(folder: Path, arguments: list[str], reason: str) -> None:
    done = run(folder, "-m", "warplens.nvtx", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m warplens.nvtx")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_help(folder: Path) -> None:
    done = run(folder, "-m", "warplens.nvtx", "--help")
    assert done.returncode == 0
    assert "--annotate-cfuncs" in done.stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["program.py:1(<module>)", "program.py:4(run)", "sibling.py:1(value)"]),
        (["--no-linenos"], ["<module>", "run", "value"]),
        (["--no-linenos", "--annotate-cfuncs"], ["<module>", "run", "value", "print"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("program", [["program.py"], ["-m", "program"]], ids=" ".join)
def test_calls_are_ranges(
    folder: Path, tool: Path, program: list[str], options: list[str], expected: list[str]
) -> None:
    log = folder / "log"
    done = run(
        folder,
        "-m",
        "warplens.nvtx",
        *options,
        *program,
        "--exit",
        NVTX_INJECTION64_PATH=str(tool),
        NVTX_TOOL_LOG=str(log),
    )
    assert done.returncode == 7, done.stderr
    events = [decode(line) for line in log.read_text().splitlines()]
    pushed = [
        event["message"] for event in events if event["event"] == "push" and event["domain"] == "nvtx.py"
    ]
    assert [name for name in pushed if name in expected][-len(expected) :] == expected
    assert ("print" in pushed) == ("--annotate-cfuncs" in options)
    assert len([event for event in events if event["event"] == "pop"]) == len(pushed)


@pytest.mark.slow
def test_functions_of_the_program_travel_to_worker_processes(folder: Path) -> None:
    (folder / "workers.py").write_text(
        "import multiprocessing\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(double, [1, 2]))\n"
    )
    done = run(folder, "-m", "warplens.nvtx", "workers.py")
    assert (done.returncode, done.stdout) == (0, "[2, 4]\n"), done.stderr


def test_nvtx_disable_just_runs_the_program(folder: Path) -> None:
    done = run(folder, "-m", "warplens.nvtx", "program.py", "--exit", NVTX_DISABLE="1")
    assert done.returncode == 7
