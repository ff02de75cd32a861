"""`benchmarks/run.py`: a benchmark that fails takes no other along, and what it had measured by then is not lost."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.optional_dependencies import ROOT

_GOOD = '''"""Counts to one."""
from harness import Row
def run(quick): return [Row("one", 1.0, "ns", budget=2.0, budget_on="value")]
'''
_HALF = '''"""Fails in its second half."""
from harness import Row
def run(quick):
    yield Row("half", 0.5, "ns")
    raise ValueError("no other half")
'''


@pytest.fixture(name="runner")
def _runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """`run.py` over a folder with three benchmarks, of which one is broken and one fails."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("benchmarks_run", ROOT / "benchmarks" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    for name, text in {
        "planted_broken": "import no_such_module",
        "planted_half": _HALF,
        "planted_good": _GOOD,
    }.items():
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(module, "HERE", folder)
    monkeypatch.setattr(module, "PAGE", tmp_path / "performance.md")
    monkeypatch.syspath_prepend(str(folder))
    return module


def _run(runner: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["run.py", *words])
    status: int = runner.main()
    return status


def test_the_others_run_and_all_that_was_measured_is_kept(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    assert (
        _run(runner, monkeypatch, "--keep", str(kept), "planted_broken", "planted_half", "planted_good") == 1
    )
    assert sorted(path.stem for path in kept.iterdir()) == ["planted_good", "planted_half"]
    half = json.loads((kept / "planted_half.json").read_text())
    assert (half["stopped"], [row["what"] for row in half["rows"]]) == ("ValueError: no other half", ["half"])
    told = capfd.readouterr()
    assert "| half | 0.5 ns |" in told.out
    assert [line for line in told.err.splitlines() if line.startswith("failed: ")] == [
        "failed: planted_broken",
        "failed: planted_half",
    ]
    assert not (tmp_path / "performance.md").exists()


def test_half_a_result_does_not_come_into_the_table(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "benchmarks" / "planted_broken.py").unlink()
    assert _run(runner, monkeypatch) == 1
    assert [path.stem for path in (tmp_path / "benchmarks" / "results").iterdir()] == ["planted_good"]
    assert "# Performance" in (tmp_path / "performance.md").read_text()
    assert "Counts to one." in (tmp_path / "performance" / "other.md").read_text()


def test_parts_run_one_by_one(runner: ModuleType) -> None:
    """What benchmarks of GPUs are made of: the first failure is raised, at the end."""
    shared = importlib.import_module("_intrakernel_gpu")
    row = shared.Row("what", 1.0, "ns")

    def fails() -> list[object]:
        raise ValueError("no")

    found = shared.one_by_one(lambda: [row], fails, lambda: [row])
    assert [next(found), next(found)] == [row, row]
    with pytest.raises(RuntimeError, match="1 of 3 parts failed: ValueError: no"):
        next(found)
