"""tools/compile_once.py: what was compiled is taken again wherever the tree lies, and only as long as nothing differs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "compile_once.py"
Compile = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.require("gcc")]


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A compiler that counts how often it was called; the file with a line for each call."""
    log = tmp_path / "calls"
    log.touch()
    compiler = tmp_path / "count-gcc"
    compiler.write_text(f'#!/bin/sh\necho call >> "{log}"\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    return log


@pytest.fixture
def compile_in(tmp_path: Path, calls: Path) -> Compile:
    """Compile part.c of a tree, which includes part.h beside it and deep/place.h of a place."""
    tool = tmp_path / "tools" / "compile_once.py"
    tool.parent.mkdir()
    tool.write_bytes(TOOL.read_bytes())  # objects are kept beside it

    def run(tree: str, *words: str, value: int = 1, header: str = "") -> subprocess.CompletedProcess[str]:
        folder = tmp_path / tree
        (folder / "place" / "deep").mkdir(parents=True, exist_ok=True)
        (folder / "part.c").write_text(
            '#include <stddef.h>\n#include "part.h"\n#include <deep/place.h>\nint f(void) { return VALUE + OTHER; }\n'
        )
        (folder / "part.h").write_text(f"#define VALUE {value}\n{header}\n")
        (folder / "place" / "deep" / "place.h").write_text("#define OTHER 2\n")
        command: list[str | Path] = [
            calls.with_name("count-gcc"),
            f"-I{folder}/place",
            "-MD",
            "-MT",
            "part.o",
            "-MF",
            folder / "part.d",
            *words,
        ]
        out = folder / "part.o"
        out.unlink(missing_ok=True)
        command += ["-o", out, "-c", folder / "part.c"]
        return subprocess.run(
            [sys.executable, "-S", "-E", tool, *command], capture_output=True, text=True, check=False
        )

    return run


def test_an_object_is_there_for_every_tree(compile_in: Compile, calls: Path, tmp_path: Path) -> None:
    for tree in ("one", "two", "one"):
        done = compile_in(tree)
        assert (done.returncode, done.stderr) == (0, "")
    assert len(calls.read_text().splitlines()) == 1
    assert (tmp_path / "one" / "part.o").read_bytes() == (tmp_path / "two" / "part.o").read_bytes()


def test_the_listing_names_the_headers_of_its_own_tree(compile_in: Compile, tmp_path: Path) -> None:
    for tree in ("one", "two"):
        compile_in(tree)
        target, _, headers = (tmp_path / tree / "part.d").read_text().replace("\\\n", " ").partition(":")
        assert target == "part.o"
        own = {Path(path).resolve() for path in headers.split() if not path.startswith("/usr/")}
        assert own == {tmp_path / tree / name for name in ("part.c", "part.h", "place/deep/place.h")}
        assert any(path.endswith("stddef.h") for path in headers.split())


def test_different_sources_or_options_are_compiled(compile_in: Compile, calls: Path) -> None:
    compile_in("one")
    compile_in("one", value=2)
    compile_in("one", "-O1")
    compile_in("one", "-O1", "-g")
    compile_in("two", "-O1", "-g")  # where it lies is in the debug information
    assert len(calls.read_text().splitlines()) == 5
    compile_in("one")
    compile_in("one", value=2)
    assert len(calls.read_text().splitlines()) == 5


def test_headers_of_the_system_are_told_apart_by_their_folder(compile_in: Compile, tmp_path: Path) -> None:
    """As Python.h of two versions is: the same name, in two folders below /usr/."""
    tool = tmp_path / "tools" / "compile_once.py"
    tool.write_text(TOOL.read_text().replace('SYSTEM = "/usr/"', f'SYSTEM = "{tmp_path}/system/"'))
    made = []
    for version in (1, 2, 1):
        folder = tmp_path / "system" / f"python{version}"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "version.h").exists():
            (folder / "version.h").write_text(f'static const char *version = "this is version {version}";\n')
        compile_in(
            "one",
            "-isystem",
            str(folder),
            header="#include <version.h>\nconst char *f_version(void) { return version; }",
        )
        made.append((tmp_path / "one" / "part.o").read_bytes())
    assert [b"version 1" in made[0], b"version 2" in made[1], b"version 1" in made[2]] == [True] * 3


def test_errors_and_warnings_are_those_of_the_compiler(compile_in: Compile, calls: Path) -> None:
    for _ in range(2):
        assert "#warning" in compile_in("one", header="#warning careful").stderr
        failed = compile_in("one", header="#error no")
        assert failed.returncode != 0
        assert "#error no" in failed.stderr
    assert len(calls.read_text().splitlines()) == 4


def test_other_calls_are_handed_on(compile_in: Compile, calls: Path, tmp_path: Path) -> None:
    compile_in("one")
    for _ in range(2):
        words: list[str | Path] = [
            calls.with_name("count-gcc"),
            "-shared",
            tmp_path / "one" / "part.o",
            "-o",
            tmp_path / "part.so",
        ]
        subprocess.run([sys.executable, TOOL, *words], check=True)
    assert len(calls.read_text().splitlines()) == 3


def test_versions_of_cmake_put_the_standard_in_different_places(compile_in: Compile, calls: Path) -> None:
    compile_in("one", "-std=c11", "-fPIC", "-O1")
    compile_in("one", "-fPIC", "-O1", "-std=c11")
    assert len(calls.read_text().splitlines()) == 1
    compile_in("one", "-fPIC", "-O1", "-std=c17")
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.exhaustive
@pytest.mark.slow
def test_headers_of_the_library_are_compiled_once(calls: Path, compile_in: Compile, tmp_path: Path) -> None:
    """After a few files of C++: errors, what is listed and what is made are as without."""
    compile_in("one")  # puts the tool there
    compiler = tmp_path / "count-g++"
    compiler.write_text(calls.with_name("count-gcc").read_text().replace("exec gcc", "exec g++"))
    compiler.chmod(0o755)
    program = [sys.executable, "-S", "-E", str(tmp_path / "tools" / "compile_once.py"), str(compiler)]

    def made(name: str, text: str) -> str:
        source = tmp_path / f"{name}.cpp"
        source.write_text(text)
        words = [
            *program,
            "-std=c++20",
            f"-DOWN_NAME={name}",
            "-MD",
            "-MT",
            "x",
            "-MF",
            f"{tmp_path}/listing",
            "-c",
            str(source),
        ]
        return subprocess.run(
            [*words, "-o", f"{tmp_path}/{name}.o"], capture_output=True, text=True, check=False
        ).stderr

    text = '#include "own.h"\n#include <vector>\nstd::vector<int> OWN_NAME() { return {VALUE}; }\n'
    (tmp_path / "own.h").write_text("#define VALUE 1\n")
    for number in range(6):
        assert made(f"f{number}", text) == ""
        listed = (tmp_path / "listing").read_text().split()
        assert str(tmp_path / "own.h") in listed
        assert any(path.endswith("/vector") for path in listed)
        assert not any("/build/objects/" in path for path in listed)
    (common,) = (tmp_path / "build" / "objects").glob("common-*/common.h.gch")
    assert len(calls.read_text().splitlines()) == 1 + 6 + 1
    common.with_suffix("").write_text("#error the compiled one is not taken\n")
    assert made("g", text) == ""
    assert "no_such_name" in made("h", f"{text}int x = no_such_name;\n")
    before = len(calls.read_text().splitlines())
    assert made("g", text) == ""
    (tmp_path / "own.h").write_text("#define VALUE 2\n")
    assert len(calls.read_text().splitlines()) == before
    assert made("g", text) == ""
    assert len(calls.read_text().splitlines()) == before + 1


def test_a_compiler_that_lists_no_precompiled_headers_compiles_each_file_whole(
    compile_in: Compile, calls: Path, tmp_path: Path
) -> None:
    """As clang does: it refuses GCC's word for it."""
    compile_in("one")  # puts the tool there
    compiler = tmp_path / "count-clang++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-fpch-deps*) exit 1;; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    program = [sys.executable, "-S", "-E", str(tmp_path / "tools" / "compile_once.py"), str(compiler)]
    for number in range(6):
        source = tmp_path / f"f{number}.cpp"
        source.write_text(f"int f{number}() {{ return {number}; }}\n")
        assert (
            subprocess.run([*program, "-c", str(source), "-o", f"{source}.o"], check=False).returncode == 0
        ), number


def test_objects_unused_for_a_week_are_removed(compile_in: Compile, calls: Path, tmp_path: Path) -> None:
    compile_in("one")
    objects = tmp_path / "build" / "objects"
    for path in (*objects.iterdir(), objects / "last"):
        os.utime(path, (0, 0))
    compile_in("one", "-O1")
    compile_in("one")
    assert len(calls.read_text().splitlines()) == 3
    assert len([path for path in objects.iterdir() if path.is_dir()]) == 2
