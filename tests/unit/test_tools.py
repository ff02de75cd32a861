"""The project's own tools: the include check finds planted violations, the benchmark harness judges and times rightly."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tool_{Path(path).stem}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def native(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The include check over a small tree."""
    for name in (
        "spool/file.h",
        "agent/source.h",
        "agent/sources/nvtx/nvtx.h",
        "agent/sources/cuda/cuda.h",
        "drivers/nvtx.h",
        "include/warplens/format.h",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("#pragma once\n")
    tool = _load("tools/check_includes.py")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    return tool


@pytest.mark.parametrize(
    ("source", "text", "complaint"),
    [
        ("spool/x.cpp", '#include "agent/source.h"', "spool may not see agent"),
        ("spool/x.cpp", "#include <Python.h>", "only bindings may"),
        ("spool/x.cpp", "#include <nvtx3/nvToolsExt.h>", "see the NVTX headers"),
        ("agent/sources/x.cpp", '#include "agent/sources/cuda/cuda.h"', "a source does not know another"),
        ("agent/sources/x.cpp", '#include "cuda/cuda.h"', "a source does not know another"),
        ("agent/sources/nvtx/names.cpp", '#include "cuda/cuda.h"', "a source does not know another"),
        ("agent/x.cpp", "  #  include <Python.h>", "only bindings may"),
        ("drivers/x.cpp", "#include <cupti.h>", "load the library by name"),
        ("drivers/x.cpp", '#include "spool/file.h"', "drivers may not see spool"),
        ("bindings/x.cpp", '#include "agent/source.h"', "bindings may not see agent"),
        ("agent/x.cpp", '#include "not/there.h"', "not below native/"),
        ("elsewhere/x.cpp", "", "give it a place"),
    ],
)
def test_a_planted_include_is_found(native: ModuleType, source: str, text: str, complaint: str) -> None:
    path = native.ROOT / source
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{text}\n")
    (found,) = native.complaints(path)
    assert complaint in found


def test_a_header_of_the_library_that_was_forgotten_is_found(native: ModuleType) -> None:
    """The build would not notice: it puts some of them before every file."""
    path = native.ROOT / "spool" / "x.cpp"
    path.write_text('#include "file.h"\n// std::mutex\nstd::vector<int> f() { return {std::min(1, 2)}; }\n')
    assert native.forgotten(path) == [
        "uses std::min: include <algorithm>",
        "uses std::vector: include <vector>",
    ]
    (native.ROOT / "spool" / "file.h").write_text("#include <algorithm>\n#include <vector>\n")
    native.named.cache_clear()
    assert native.forgotten(path) == []


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "spool/x.cpp",
            '#include <vector>\n#include "file.h"\n#include "warplens/format.h"\n#include <warplens/format.h>',
        ),
        (
            "agent/sources/nvtx/nvtx.cpp",
            '#include "nvtx.h"\n#include "agent/source.h"\n#include <nvtx3/nvToolsExt.h>',
        ),
        ("agent/sources/nvtx/payload.cpp", '#include "nvtx.h"'),
        ("bindings/x.cpp", '#include <Python.h>\n#include "warplens/format.h"'),
        ("tests/x.cpp", '#include "agent/sources/cuda/cuda.h"'),
    ],
)
def test_an_include_that_keeps_the_layers_is_not(native: ModuleType, source: str, text: str) -> None:
    path = native.ROOT / source
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{text}\n")
    assert native.complaints(path) == []


def test_a_budget_is_judged_by_what_it_is_on() -> None:
    row = _load("benchmarks/harness.py").Row
    assert row("a", 90.0, "ns", "floor", 60.0, budget=1.5).ok
    assert not row("a", 91.0, "ns", "floor", 60.0, budget=1.5).ok
    assert row("a", 3.0, "M/s", budget=2.0, budget_on="at least").ok
    assert not row("a", 3.0, "s", budget=2.0, budget_on="value").ok
    assert row("a", 3.0, "s").ok is None
    assert row("a", 3.0, "s", "floor", None, budget=1.0).ok is False  # a budget without its floor is not kept


def test_candidates_take_turns() -> None:
    harness = _load("benchmarks/harness.py")
    order: list[str] = []
    ticks = iter(range(0, 10_000, 10))
    timings = harness.interleave(
        {"a": lambda calls: order.append("a"), "b": lambda calls: order.append("b")},
        calls=5,
        rounds=3,
        clock=lambda: next(ticks),
    )
    assert order == [
        "a",
        "b",
        "a",
        "b",
        "b",
        "a",
        "a",
        "b",
    ]  # a warm-up each, then rounds in alternating order
    assert timings["a"].rounds == (2.0, 2.0, 2.0)
    assert timings["a"].best == timings["a"].median == 2.0
    assert harness.paired_ratio(timings["a"], timings["b"]) == 1.0


def test_this_interpreter_is_known() -> None:
    tool = _load("tools/pythons.py")
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if base.is_file():
        assert tool.look(base) == (tuple(sys.version_info[:2]), base)
    assert tool.look(Path("/nonexistent/python3.12")) is None


def test_preflight_names_the_package_of_what_is_missing() -> None:
    done = subprocess.run(
        ["sh", str(ROOT / "tools" / "preflight.sh"), "no-such-python"],
        env={"PATH": "/usr/bin:/bin", "CC": "no-such-gcc", "CXX": "no-such-g++"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert (
        "missing: a C compiler that works (no-such-gcc) (Debian and Ubuntu: apt-get install gcc libc6-dev)"
        in done.stderr
    )
    assert (
        done.stderr.splitlines()[-1]
        == "All at once: apt-get install gcc libc6-dev g++ python3 python3-venv python3-dev"
    )
