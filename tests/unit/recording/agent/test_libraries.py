"""Which libraries carry NVTX, and how they are called."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from warplens.recording.agent.libraries import Library, carries_nvtx, named, package_of, silent

SEARCH = ["", "/usr/lib/python3", "/venv/site-packages", "/venv"]


@pytest.mark.parametrize(
    ("path", "name", "package"),
    [
        ("/venv/site-packages/nvtx/_lib/lib.cpython-311-x86_64-linux-gnu.so", "nvtx._lib.lib", "nvtx"),
        ("/venv/site-packages/nvtx/_lib/lib.cpython-314t-x86_64-linux-gnu.so", "nvtx._lib.lib", "nvtx"),
        ("/venv/site-packages/alone.abi3.so", "alone", None),
        ("/venv/site-packages/torch/lib/libtorch_cuda.so", "libtorch_cuda.so", "torch"),
        ("/venv/site-packages/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2", "nvidia"),
        ("/usr/lib/libnccl.so.2", "libnccl.so.2", None),
        ("/opt/x.cpython-311-x86_64-linux-gnu.so", "x.cpython-311-x86_64-linux-gnu.so", None),
    ],
)
def test_names(path: str, name: str, package: str | None) -> None:
    assert named(path, SEARCH) == Library(path, name)
    assert str(named(path, SEARCH)) == name
    assert package_of(path, SEARCH) == package


def elf(path: Path, sections: dict[bytes, bytes]) -> Path:
    """Write a 64-bit ELF file with these sections."""
    body, headers, names = b"", [bytes(64)], b"\0"
    for name, content in {**sections, b".shstrtab": b""}.items():
        at = len(names)
        names += name + b"\0"
        content = names if name == b".shstrtab" else content
        kind = 3 if name == b".shstrtab" else 1
        headers.append(struct.pack("<IIQQQQIIQQ", at, kind, 2, 0, 64 + len(body), len(content), 0, 0, 1, 0))
        body += content
    table = 64 + len(body) if sections else 0
    head = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack(
            "<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, len(headers), len(headers) - 1
        )
    )
    path.write_bytes(head + body + b"".join(headers))
    return path


MARK = b"NVTX_INJECTION64_PATH\0"


@pytest.mark.parametrize(
    ("sections", "carries"),
    [
        ({b".rodata": b"x" * 100 + MARK}, True),
        ({b".text": b"code", b".rodata.str1.1": MARK}, True),
        ({b".rodata": b"x" * ((8 << 20) - 7) + MARK}, True),  # across two pieces
        ({b".rodata": MARK[:-1] + b"_OF_ANOTHER"}, False),
        ({b".nv_fatbin": MARK, b".rodata": b"nothing"}, False),
        ({b".text": b"code"}, False),
    ],
)
def test_only_constants_are_looked_at(sections: dict[bytes, bytes], carries: bool, tmp_path: Path) -> None:
    assert carries_nvtx(str(elf(tmp_path / "lib.so", sections))) is carries


def test_a_file_without_sections_is_read_whole(tmp_path: Path) -> None:
    path = elf(tmp_path / "lib.so", {})
    assert not carries_nvtx(str(path))
    path.write_bytes(path.read_bytes() + MARK)
    assert carries_nvtx(str(path))


def test_a_file_that_is_no_library_contains_no_nvtx(tmp_path: Path) -> None:
    whole = elf(tmp_path / "lib.so", {b".rodata": MARK}).read_bytes()
    for number, content in enumerate(
        [
            b"",
            b"\x7fELF",
            MARK,
            whole[:70],
            whole[:-100],
            b"\x7fELF\x01" + whole[5:],
            whole[:40] + b"\xff" * 24,
        ]
    ):
        path = tmp_path / f"{number}.so"
        path.write_bytes(content)
        assert not carries_nvtx(str(path)), number
    assert not carries_nvtx(str(tmp_path))
    assert not carries_nvtx(str(tmp_path / "none"))


@pytest.mark.require("native")
def test_our_own_binding_carries_it_and_python_does_not() -> None:
    binding = pytest.importorskip("warplens.nvtx._binding")
    assert carries_nvtx(str(binding.__file__))
    assert not carries_nvtx(sys.executable)


def test_silent_are_those_that_were_there_and_never_asked(tmp_path: Path) -> None:
    for name in ("late.so", "heard.so", "agent.so"):
        elf(tmp_path / name, {b".rodata": MARK})
    elf(tmp_path / "other.so", {b".rodata": b"no"})
    (tmp_path / "link.so").symlink_to("heard.so")
    before = [str(tmp_path / name) for name in ("late.so", "heard.so", "other.so", "agent.so", "gone.so")]
    assert silent(before, [str(tmp_path / "link.so")], str(tmp_path / "agent.so")) == [before[0]]
