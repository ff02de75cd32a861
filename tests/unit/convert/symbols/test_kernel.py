"""Names of the kernel's functions, from a made-up /proc/kallsyms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warplens.convert.symbols import lookup
from warplens.convert.symbols.kernel import Function, KernelSymbols, read_symbols, this_boot
from warplens.convert.symbols.lookup import Symbols

SHOWN = """\
0000000000000000 A fixed_percpu_data
0000000000001000 A cpu_debug_store
ffffffff81000000 T _stext
ffffffff81000100 t __do_read
ffffffff81000100 T do_read
ffffffff81000100 W weak_read
ffffffff81000200 D not_code
ffffffff81000300 t helper
ffffffffc0000000 t nv_open\t[nvidia]
ffffffffc0000080 T nv_read\t[nvidia]
"""
HIDDEN = "".join(f"{0:016x}{line[16:]}\n" for line in SHOWN.splitlines())


def find(text: str, *addresses: int) -> list[Function | None]:
    return KernelSymbols(text.encode()).find(np.array(addresses, np.uint64))


def test_addresses_are_in_the_function_that_begins_before_them() -> None:
    helper = Function("helper", "[kernel]")
    assert find(SHOWN, 0xFFFFFFFF81000300, 0xFFFFFFFF81000310) == [helper, helper]
    assert find(SHOWN, 0xFFFFFFFF810002FF) == [
        Function("do_read", "[kernel]")
    ]  # data between them is not code


def test_of_several_names_the_best_known_is_taken() -> None:
    assert find(SHOWN, 0xFFFFFFFF81000104) == [Function("do_read", "[kernel]")]


def test_modules_are_named() -> None:
    assert find(SHOWN, 0xFFFFFFFFC000007F, 0xFFFFFFFFC0000080) == [
        Function("nv_open", "[nvidia]"),
        Function("nv_read", "[nvidia]"),
    ]


def test_an_address_far_from_all_functions_has_no_name() -> None:
    assert find(SHOWN, 0, 0x1000, 0xFFFFFFFF80FFFFFF, 0xFFFFFFFF90000000, 0xFFFFFFFFFFFFFFFF) == [None] * 5


def test_hidden_addresses_are_no_names() -> None:
    assert len(KernelSymbols(HIDDEN.encode())) == 0
    assert find(HIDDEN, 0xFFFFFFFF81000104) == [None]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "x T y\n",
        "ffffffff81000000\n",
        "ffffffff81000000 T\n",
        "1" * 40 + " T far\n",
        "-1 T below\n",
    ],
)
def test_damaged_lines_are_passed_over(text: str) -> None:
    assert find(text, 0xFFFFFFFF81000000) == [None]
    assert find(text + SHOWN, 0xFFFFFFFF81000300) == [Function("helper", "[kernel]")]


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "kallsyms"
    assert len(read_symbols(path)) == 0
    path.write_bytes(SHOWN.encode() + b"ffffffff81000400 t odd\xff\n")
    assert len(read_symbols(path)) == 8  # one function has three names
    assert this_boot(tmp_path / "none") is None
    (tmp_path / "boot").write_text("abc\n")
    assert this_boot(tmp_path / "boot") == "abc"


def test_only_the_kernel_that_ran_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "this_boot", lambda: "now")
    monkeypatch.setattr(lookup, "read_symbols", lambda: KernelSymbols(SHOWN.encode()))
    where = np.array([0xFFFFFFFF81000304], np.uint64)
    symbols = Symbols()
    assert symbols.look_up_kernel("now", where) == [Function("helper", "[kernel]")]
    assert not symbols.notes()
    for boot in ("before", ""):
        assert symbols.look_up_kernel(boot, where) == [None]
    (note,) = symbols.notes()
    assert "[kernel]" in note.message
    assert "another machine" in note.message


def test_a_kernel_that_hides_says_how_it_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "this_boot", lambda: "now")
    monkeypatch.setattr(lookup, "read_symbols", lambda: KernelSymbols(HIDDEN.encode()))
    symbols = Symbols()
    assert symbols.look_up_kernel("now", np.array([0xFFFFFFFF81000304], np.uint64)) == [None]
    assert "kernel.kptr_restrict=0" in symbols.notes()[0].message
