"""Names of code that was made at run time, and of code without symbols: what stands in the files of real compilers, and in bad ones."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from warplens.convert.symbols import generated
from warplens.convert.symbols.elf import Elf
from warplens.convert.symbols.generated import Generated, generated_by
from warplens.convert.symbols.kernel import this_boot
from warplens.convert.symbols.lookup import Symbols
from warplens.native.names import LINE, demangle, shortened
from warplens.spool.process import Process

SOURCE = """
static volatile double sink;
__attribute__((noinline)) static void one(long n) { for (long i = 0; i < n; i++) sink += i * 0.5; }
__attribute__((noinline)) static void two(long n) { for (long i = 0; i < n; i++) sink += i * 0.25; }
void shown(long n) { one(n); two(n / 2); }
"""


def load(address: int, size: int, number: int, name: bytes) -> bytes:
    """A record of jitdump: code was made."""
    body = struct.pack("<IIQQQQ", 1, 1, address, address, size, number) + name + b"\0" + bytes(size)
    return struct.pack("<IIQ", 0, 16 + len(body), 5) + body


def move(old: int, new: int, size: int, number: int) -> bytes:
    body = struct.pack("<IIQQQQQ", 1, 1, new, old, new, size, number)
    return struct.pack("<IIQ", 1, 16 + len(body), 6) + body


HEAD = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)


def names(code: Generated, *addresses: int) -> list[str | None]:
    return code.find(np.array(addresses, np.int64))


def of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pid: int = 77, *, ticks: int = 0) -> Generated:
    monkeypatch.setattr(generated, "_MAP", str(tmp_path / "perf-{pid}.map"))
    process = Process(pid=pid, boot_id=this_boot() or "", start_ticks=ticks)
    return generated_by(process, [str(tmp_path / "jit-77.dump"), "/nowhere/jit-1.dump", "/lib/libc.so.6"])


def test_a_map_names_code_and_later_lines_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        b"7f0010 20 old",
        b"7f0010 10 py::hot:/app.py",
        b"7f0100 8 _ZN4shop4sellEi",
        b"zz 1 bad",
        b"7f0200",
        b"",
    ]
    (tmp_path / "perf-77.map").write_bytes(b"\n".join(lines))
    code = of(tmp_path, monkeypatch)
    assert names(code, 0x7F0010, 0x7F001F, 0x7F0020, 0x7F0104, 0x7F0000) == [
        "py::hot:/app.py", "py::hot:/app.py", None, "shop::sell(int)", None,
    ]  # fmt: skip


def test_a_jitdump_file_names_code_that_moved_and_may_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (
        HEAD + load(0x1000, 16, 1, b"first") + load(0x2000, 16, 2, b"second") + move(0x1000, 0x3000, 16, 1)
    )
    for end in range(len(whole) + 1):
        (tmp_path / "jit-77.dump").write_bytes(whole[:end])
        assert set(names(of(tmp_path, monkeypatch), 0x1000, 0x2008, 0x300F)) <= {"first", "second", None}
    assert names(of(tmp_path, monkeypatch), 0x1000, 0x2008, 0x300F, 0x3010) == [
        "first",
        "second",
        "first",
        None,
    ]


def test_the_file_of_an_earlier_process_or_of_somebody_else_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "perf-77.map"
    path.write_bytes(b"1000 10 name")
    assert names(of(tmp_path, monkeypatch), 0x1000) == ["name"]
    os.utime(path, (1, 1))
    assert names(of(tmp_path, monkeypatch, ticks=1000), 0x1000) == [None]
    os.utime(path)
    monkeypatch.setattr(generated, "this_boot", lambda: "another")
    assert names(of(tmp_path, monkeypatch), 0x1000) == [None]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_stripped_functions_are_told_apart_by_where_they_begin(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    plain, stripped = tmp_path / "plain.so", tmp_path / "libwork.so"
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", "-Wl,--build-id", "-o", plain, tmp_path / "a.c"], check=True
    )
    subprocess.run(["strip", "-o", stripped, plain], check=True)
    lines = subprocess.run(
        ["nm", "-S", plain], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    places = {
        words[3]: (int(words[0], 16), int(words[1], 16)) for line in lines if len(words := line.split()) == 4
    }
    (one, size), (two, _), (shown, _) = places["one"], places["two"], places["shown"]
    asked = sorted((one, one + 4, one + size - 1, two + 3, shown + 1))
    found = Symbols().look_up(str(stripped), Elf(stripped).build_id, np.array(asked, np.int64))
    of_address = {
        address: place.function for address, place in zip(asked, found, strict=True) if place is not None
    }
    assert of_address == {
        **dict.fromkeys((one, one + 4, one + size - 1), f"[libwork.so]+{one:#x}"),
        two + 3: f"[libwork.so]+{two:#x}",
        shown + 1: "shown",
    }


def test_long_names_of_cpp_become_a_line() -> None:
    inner = "std::vector<std::pair<std::string, std::map<int, std::function<void (int)>>>>"
    name = f"shop::sell<{inner}, {inner}>(shop::Till const&, {inner}) const"
    short = shortened(name)
    assert len(short) <= LINE < len(name)
    assert short.startswith("shop::sell<")
    assert short.endswith(" const")
    assert (
        shortened("std::ostream& operator<<(std::ostream&, T)")
        == "std::ostream& operator<<(std::ostream&, T)"
    )
    operator = f"Big<{inner}>::operator()({inner}, {inner}) const"
    assert "operator()" in shortened(operator)
    assert shortened("x" * 500) == "x" * 500
    assert demangle("_Z3fooi") == "foo(int)"
