"""`make gpu`: it forgets no test or benchmark of GPUs, and a step that fails, hangs or has no time left takes no other along."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.pieces import ROOT


@pytest.fixture(name="tool")
def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tool_gpu", ROOT / "tools" / "gpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _step(tool: ModuleType, name: str, program: str, seconds: int = 60) -> Any:
    return tool.Step(name, "group", lambda out: [sys.executable, "-c", program], seconds)


def test_every_test_and_benchmark_of_gpus_is_a_step(tool: ModuleType) -> None:
    names = [step.name for step in tool.steps()]
    assert len(names) == len(set(names))
    assert {path.stem for path in (ROOT / "tests" / "gpu").glob("test_*.py")} <= set(names)
    benchmarks = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if re.search(r'^NEEDS = "gpu"', path.read_text(), re.MULTILINE)}
    assert benchmarks == {step.name for step in tool.steps() if step.group == "figures"}
    assert all(Path(word).exists() for step in tool.steps() for word in step.command(ROOT / "none") if word.startswith("tests/gpu/"))


def test_a_step_says_how_it_ended_and_what_it_said_is_kept(tool: ModuleType, tmp_path: Path) -> None:
    assert tool.run(_step(tool, "good", "print('well')"), tmp_path, dict(os.environ), 60)[0] == "ok"
    assert tool.run(_step(tool, "bad", "raise SystemExit('ill')"), tmp_path, dict(os.environ), 60)[0] == "failed"
    assert tool.run(tool.Step("absent", "group", lambda out: ["no-such-program"], 5), tmp_path, dict(os.environ), 60)[0] == "failed"
    assert tool.told(tmp_path / "good.log", "ok") == "well"
    assert "ill" in tool.told(tmp_path / "bad.log", "failed")
    assert "no-such-program" in tool.told(tmp_path / "absent.log", "failed")


@pytest.mark.slow
def test_a_step_that_hangs_is_stopped_with_what_it_started(tool: ModuleType, tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'new')!r}, 'w').write(str(child.pid)); os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'child')!r})\n"
        "print('here', flush=True); time.sleep(600)"
    )
    ended, _ = tool.run(_step(tool, "hangs", program), tmp_path, dict(os.environ), 5)
    assert ended == "stopped after 5 s"
    if (tmp_path / "child").exists():  # a machine may be too slow for it
        child = Path(f"/proc/{(tmp_path / 'child').read_text()}")
        deadline = time.monotonic() + 60
        while child.exists() and "State:\tZ" not in (child / "status").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not child.exists() or "State:\tZ" in (child / "status").read_text()


@pytest.fixture(name="device")
def _device(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The tool as if there were a GPU, with nothing to build and three steps of which one fails."""
    monkeypatch.setattr(tool, "without_gpu", lambda: None)
    monkeypatch.setattr(tool, "build", lambda out: True)
    monkeypatch.setattr(tool, "BUILD", tmp_path / "build")
    monkeypatch.setattr(sys, "path", list(sys.path))
    programs = {"one": "print('1 passed')", "two": "raise SystemExit(1)", "three": "print('3 passed')"}
    monkeypatch.setattr(tool, "steps", lambda: [_step(tool, name, program) for name, program in programs.items()])
    return tmp_path / "out"


def test_a_failed_step_is_told_and_the_next_one_runs(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(device)])
    assert tool.main() == 1
    assert json.loads((device / "ended.json").read_text()) == {"one": "ok", "two": "failed", "three": "ok"}
    assert "2 of 3 steps went well" in capfd.readouterr().out
    assert json.loads((device / "facts.json").read_text())["python"] == sys.version.split()[0]


def test_what_has_no_time_left_is_not_begun(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "three", "--limit", "1", "--out", str(device)])
    assert tool.main() == 1
    assert "three: not run, no time left" in capfd.readouterr().out


def test_a_name_that_is_none_is_refused(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "nonsense"])
    with pytest.raises(SystemExit):
        tool.main()
    assert "no group or step nonsense" in capfd.readouterr().err
