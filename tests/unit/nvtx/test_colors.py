"""Colours: names, numbers, hexadecimal, and matplotlib's where it is installed."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from warplens.nvtx.colors import NAMES, color_to_hex


@pytest.mark.require("nvtx")
def test_the_names_are_those_of_pypi_nvtx() -> None:
    from nvtx.colors import _NVTX_COLORS

    assert {name: color_to_hex(name) for name in _NVTX_COLORS} == dict(_NVTX_COLORS)
    assert set(NAMES) == set(_NVTX_COLORS) - {None}


@pytest.mark.parametrize(
    ("color", "argb"),
    [
        (None, 0x0000FF),
        (0x12345678, 0x12345678),
        (0x1FFFFFFFF, 0xFFFFFFFF),
        ("#123456", 0xFF123456),
        ("#12345678", 0x78123456),
        ("#fA0", 0xFFFFAA00),
    ],
)
def test_numbers_and_hexadecimal(color: object, argb: int) -> None:
    assert color_to_hex(color) == argb


@pytest.mark.parametrize("color", ["mauvish", "#12", "#ggg", "", (1, 0, 0), 1.5])
def test_a_wrong_colour_lists_the_choices(color: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # not installed
    with pytest.raises(TypeError, match=r"use one of blue, cyan, .*'#rrggbb', or an int"):
        color_to_hex(color)


@pytest.mark.parametrize("color", ["green", "#123", "#11223344", 5, None])
def test_matplotlib_is_not_imported_for_what_is_known_without(
    color: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    (tmp_path / "matplotlib.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    color_to_hex(color)


def test_matplotlib_is_asked_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_rgba(color: object) -> tuple[float, float, float, float]:
        if color != "tab:blue":
            raise ValueError(color)
        return (0.0, 0.5, 1.0, 1.0)

    colors = types.ModuleType("matplotlib.colors")
    colors.to_rgba = to_rgba  # type: ignore[attr-defined]
    package = types.ModuleType("matplotlib")
    package.colors = colors  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", package)
    monkeypatch.setitem(sys.modules, "matplotlib.colors", colors)
    assert color_to_hex("tab:blue") == 0xFF0080FF
    with pytest.raises(TypeError, match="unknown color 'mauvish'"):
        color_to_hex("mauvish")
