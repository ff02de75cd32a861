"""The instructions that Python samples were in, by every CPython of the machine: they are those that the interpreter itself shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.programs.launching import given_time, warplens
from tests.support.programs.python_running import OLDER, PythonPrograms, PythonRun, interpreters, version_of
from tests.support.reports.python_stacks import PYTHON_SAMPLES, samples
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]
OPCODES = 2048
OPCODE, NOT_KNOWN = 22, 0xFFFFFFFF
GENERAL, SPECIALISED = 1, 2
PROGRAM = """
import dis, sys, time
END = time.monotonic() + float(sys.argv[-1])
def steady(n):
    total = 0
    for i in range(n):
        total = total * 3 % 7 + i
    return total
while time.monotonic() < END:
    steady(20000)
if sys.version_info >= (3, 11):
    print(*sorted({one.opname for one in dis.get_instructions(steady, adaptive=True)}))
"""
LOADED = "import sys; print(sorted(sys.modules), sys.dont_write_bytecode)"
needs_forms = pytest.mark.parametrize(
    "python", [path for path in interpreters() if version_of(path) >= (3, 11)]
)


@pytest.fixture
def programs(tmp_path: Path) -> PythonPrograms:
    return PythonPrograms(tmp_path)


def run(programs: PythonPrograms, python: str, flags: int, text: str, seconds: float) -> PythonRun:
    capture = programs.capture(PYTHON_SAMPLES | flags, python_hz=1000)
    done = programs.run([python, "-c", text, str(seconds)], flags, capture=capture)
    assert (done.status, done.stderr) == (0, "")
    return done


def names(run: PythonRun) -> dict[int, tuple[str, int]]:
    """Name and form of each opcode."""
    notices = [
        (record.name or "", *divmod(record["value"], 256))
        for record in run.of("cpu_notice")
        if record["notice"] == OPCODE
    ]
    return {opcode: (name, form) for name, form, opcode in notices}


def seen(run: PythonRun, function: str) -> Counter[int]:
    ticks: Counter[int] = Counter()
    for sample in samples(run):
        if sample.names and sample.names[-1] == function:
            ticks[sample.number] += sample.count
    return ticks


@needs_forms
def test_instructions_are_those_that_the_interpreter_shows(python: str, programs: PythonPrograms) -> None:
    done = given_time(
        lambda seconds: run(programs, python, OPCODES, PROGRAM, seconds),
        lambda done: seen(done, "steady").total() >= 200,
        1.0,
    )
    known, ticks = names(done), seen(done, "steady")
    there = set(done.stdout.split())
    strange = {known.get(opcode, (str(opcode), 0))[0]: count for opcode, count in ticks.items()}
    strange = {name: count for name, count in strange.items() if name not in there}
    assert sum(strange.values()) <= ticks.total() / 20, (strange, there)
    special = sum(count for opcode, count in ticks.items() if known.get(opcode, ("", 0))[1] == SPECIALISED)
    assert special >= ticks.total() / 10, {known.get(opcode): count for opcode, count in ticks.items()}
    assert len({name for name, _ in known.values()}) == len(known) > 150
    assert {"BINARY_OP": GENERAL, "BINARY_OP_ADD_INT": SPECIALISED, "POP_TOP": 0}.items() <= dict(
        known.values()
    ).items() or (version_of(python) == (3, 11) and dict(known.values())["BINARY_OP_ADAPTIVE"] == GENERAL)


@pytest.mark.parametrize("python", interpreters())
def test_the_program_finds_no_module_of_it(python: str, programs: PythonPrograms) -> None:
    done = run(programs, python, OPCODES, LOADED, 0)
    assert done.stdout == programs.bare([python, "-c", LOADED, "0"]).stdout


@needs_forms
@pytest.mark.parametrize("options", [[], ["-S"]])
def test_a_module_of_the_program_by_that_name_is_left_alone(
    python: str, options: list[str], programs: PythonPrograms
) -> None:
    (programs.folder / "opcode.py").write_text("print('imported')")
    program = programs.folder / "program.py"
    program.write_text(
        f"import sys, time\ntime.sleep(0.1)\nprint(sys.path[0])\n{LOADED}\nimport opcode", encoding="utf-8"
    )
    command: list[str | Path] = [python, *options, program]
    done = programs.run(command, 0, capture=programs.capture(PYTHON_SAMPLES | OPCODES, python_hz=1000))
    bare = programs.bare(command)
    assert (done.stdout, done.stderr) == (bare.stdout, bare.stderr)
    assert done.stdout.endswith("\nimported\n")
    assert len(names(done)) > 150


@pytest.mark.parametrize("python", [path for path in interpreters() if version_of(path) == (3, 10)])
def test_older_pythons_say_that_there_are_none(python: str, programs: PythonPrograms) -> None:
    done = given_time(
        lambda seconds: run(programs, python, OPCODES, PROGRAM, seconds),
        lambda done: bool(seen(done, "steady")),
        0.5,
    )
    assert set(seen(done, "steady")) == {NOT_KNOWN}
    assert done.notices(OLDER) == ["the instructions of Python samples are not available before CPython 3.11"]


def test_opcodes_need_their_option(programs: PythonPrograms) -> None:
    python = interpreters()[0]
    done = given_time(
        lambda seconds: run(programs, python, 0, PROGRAM, seconds),
        lambda done: bool(seen(done, "steady")),
        0.5,
    )
    assert (set(seen(done, "steady")), names(done)) == ({NOT_KNOWN}, {})


@needs_forms
def test_a_forked_child_has_names_of_its_own(python: str, programs: PythonPrograms) -> None:
    fork = "import os, warnings\nwarnings.simplefilter('ignore')  # of fork() beside our thread\nchild = os.fork()"
    text = f"{fork}\n{PROGRAM}\nchild and os.waitpid(child, 0)"
    done = given_time(
        lambda seconds: run(programs, python, OPCODES, text, seconds), lambda done: len(done.spools) == 2, 0.5
    )
    counts = [sum(record["notice"] == OPCODE for record in spool.of("cpu_notice")) for spool in done.spools]
    assert len(counts) == 2
    assert counts[0] == counts[1] > 150


@needs_forms
def test_lines_have_their_instructions(python: str, tmp_path: Path) -> None:
    program = tmp_path / "steady.py"
    program.write_text(PROGRAM, encoding="utf-8")
    made = warplens(
        "profile", "-q", "-o", "run", "--python-sampling-opcodes=true", python, program, "1.0", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    there = set(made.stdout.split())
    with open_report(tmp_path / "run.warplens") as report:
        rows = report.sql(
            "SELECT opcode, specialised, kind, cpu FROM samples WHERE opcode IS NOT NULL"
        ).to_pylist()
    assert {row["opcode"] for row in rows} & there
    assert {row["specialised"] for row in rows} >= {True, None}
    assert {(row["kind"], row["cpu"]) for row in rows} == {("python", None)}
    shown = warplens("source", "--opcodes", "run", "steady.py", cwd=tmp_path)
    lines = shown.stdout.splitlines()
    below = lines[next(at for at, line in enumerate(lines) if "total = total * 3" in line) + 1]
    assert "% specialised, " in below, shown.stdout
    assert "BINARY_OP" in below
    page = warplens("source", "--opcodes", "-f", "html", "run", cwd=tmp_path)
    assert below.split("general")[0].strip() in page.stdout
