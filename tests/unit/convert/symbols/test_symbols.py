"""Names of addresses in ELF files: of a library that is compiled here, and of files made to hurt."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from warplens.convert.symbols.elf import BadElf, Elf
from warplens.convert.symbols.functions import Functions, open_all
from warplens.convert.symbols.lines import Lines
from warplens.convert.symbols.lookup import Symbols

SOURCE = """
namespace shop { struct Till { int count(int); }; int Till::count(int n) { return n * 3; } }
static __attribute__((noinline)) int hidden(int n) { return n + 7; }
extern "C" int visible(int n) { shop::Till till; return hidden(n) + till.count(n); }
extern "C" int also(int n) __attribute__((alias("visible")));
extern "C" int outside(int);
extern "C" int calls(int n) { return outside(n) + 1; }
"""
needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("nm") is None, reason="no g++, no nm"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "a.cpp").write_text(SOURCE)
    path = folder / "libshop.so"
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-O1", "-g", "-Wl,--build-id", "-o", path, folder / "a.cpp"], check=True
    )
    return path


def addresses(path: Path) -> dict[str, int]:
    """Return what nm says."""
    lines = subprocess.run(["nm", "-C", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split(" ", 2)[2]: int(line.split()[0], 16) for line in lines if line[0] != " "}


def names(path: Path, *wanted: int) -> list[str | None]:
    found = Symbols().look_up(str(path), Elf(path).build_id, np.array(sorted(wanted), np.int64))
    return [None if place is None else place.function for place in found]


@needs_compiler
def test_functions_are_found_by_any_address_in_them(library: Path) -> None:
    known = addresses(library)
    for name in ("shop::Till::count(int)", "hidden(int)"):
        assert names(library, known[name], known[name] + 1) == [name, name]
    assert set(names(library, known["visible"])) <= {"visible", "also"}
    assert names(library, 1) == [None]


@needs_compiler
def test_stubs_are_called_as_what_they_call(library: Path) -> None:
    file = Elf(library)
    stubs = [section for section in file.sections if section.name.startswith(".plt") and section.size]
    found = [
        name
        for section in stubs
        for name in names(library, *range(section.address, section.address + section.size, 16))
    ]
    assert "outside@plt" in found


@needs_compiler
def test_a_stripped_library_has_its_exported_functions_alone(library: Path, tmp_path: Path) -> None:
    known = addresses(library)
    bare = tmp_path / "bare.so"
    subprocess.run(["strip", "-o", bare, library], check=True)
    assert names(bare, known["hidden(int)"] + 1) == [
        f"[bare.so]+{known['hidden(int)']:#x}"
    ]  # not what is next to it
    assert names(bare, known["shop::Till::count(int)"]) == ["shop::Till::count(int)"]


@needs_compiler
def test_a_debug_file_of_the_same_build_has_the_rest(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = addresses(library)
    bare, identity = tmp_path / "bare.so", Elf(library).build_id
    assert identity
    subprocess.run(["strip", "-o", bare, library], check=True)
    place = tmp_path / "debug" / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    place.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", library, place], check=True)
    monkeypatch.setattr("warplens.convert.symbols.functions.DEBUG", tmp_path / "debug")
    assert names(bare, known["hidden(int)"] + 1) == ["hidden(int)"]


@needs_compiler
def test_a_file_that_was_replaced_tells_nothing_and_that_is_said(library: Path) -> None:
    symbols = Symbols()
    assert symbols.look_up(str(library), "0123abcd", np.array([4_500], np.int64)) == [None]
    assert symbols.look_up("/nowhere/libx.so (deleted)", None, np.array([1], np.int64)) == [None]
    assert symbols.look_up("[vdso]", None, np.array([1], np.int64)) == [None]
    said = [note.message for note in symbols.notes()]
    assert len(said) == 2
    assert "cannot be read any more" in said[0]
    assert "not the file that ran" in said[1]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("flags", ["-gdwarf-5", "-gdwarf-4", "-gdwarf-2", "-gdwarf-5 -gz=zlib"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_lines_are_those_that_addr2line_tells(tmp_path: Path, flags: str, level: str) -> None:
    (tmp_path / "work.h").write_text(
        "static inline int helper(int n) {\n  int sum = 0;\n  while (n)\n    sum += n--;\n  return sum;\n}\n"
    )
    (tmp_path / "a.c").write_text(
        '#include "work.h"\nint one(int n) {\n  n = helper(n);\n\n\n  return n * 3;\n}\nint two(int n) {\n  return one(n) - 2;\n}\n'
    )
    (tmp_path / "b.c").write_text("\n" * 300 + "int three(int n) {\n  return n / 3;\n}\n")
    path = tmp_path / "lib.so"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        level,
        *flags.split(),
        "-o",
        str(path),
        str(tmp_path / "a.c"),
        str(tmp_path / "b.c"),
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    text = Elf(path).section(".text")
    assert text is not None
    asked = range(text.address, text.address + text.size)
    told = subprocess.run(
        ["addr2line", "-e", path],
        input="\n".join(map(hex, asked)),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    theirs = {address: line.split(" ")[0] for address, line in zip(asked, told.splitlines(), strict=True)}
    found = Lines(Elf(path)).find(np.array(asked, np.int64))
    ours = {address: f"{name}:{line}" for address, (name, line) in found.items()}
    known = {address: line for address, line in theirs.items() if "?" not in line}
    if "dwarf-5" in flags:  # addr2line of binutils 2.40 mistakes the numbers of its files
        assert {address: line.rpartition(":")[2] for address, line in ours.items()} == {
            address: line.rpartition(":")[2] for address, line in known.items()
        }
    else:
        assert ours == known
    assert {line.rpartition("/")[2].partition(":")[0] for line in ours.values()} == {"a.c", "b.c", "work.h"}


@needs_compiler
def test_names_come_with_lines(library: Path) -> None:
    address = addresses(library)["hidden(int)"]
    (place,) = Symbols().look_up(str(library), Elf(library).build_id, np.array([address], np.int64))
    assert place is not None
    assert (place.function, Path(place.file or "").name, place.line) == ("hidden(int)", "a.cpp", 3)


@needs_compiler
@pytest.mark.parametrize("seed", range(6))
def test_damaged_files(library: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    whole = library.read_bytes()
    tables = int.from_bytes(whole[40:48], "little")
    path = tmp_path / "x.so"
    for _ in range(15):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 30)):
            at = chance.choice(
                [chance.randrange(64), chance.randrange(tables, len(data)), chance.randrange(len(data))]
            )
            data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        path.write_bytes(data[: chance.choice([len(data), chance.randrange(1, len(data))])])
        try:
            found = Functions(open_all(path, Elf(path).build_id)).names(
                np.arange(0, 0x5000, 64, dtype=np.int64)
            )
            lines = Lines(Elf(path)).find(np.arange(0, 0x5000, 64, dtype=np.int64))
        except BadElf:
            continue
        assert all(isinstance(name, str) and 0 < line < 1 << 31 for name, line in lines.values())
        assert all(name is None or isinstance(name, str) for name in found)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"x" * 100, b"\x7fELF\x01" + bytes(100)])
def test_a_file_that_is_no_elf_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(BadElf):
        Elf(tmp_path / "x")
