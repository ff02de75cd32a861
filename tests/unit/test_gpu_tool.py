"""`make gpu`: it forgets no test or benchmark of GPUs, and a step that fails, hangs or has no time left takes no other along."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import tarfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.optional_dependencies import ROOT


@pytest.fixture(name="tool")
def _tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("gpu")


def _step(tool: ModuleType, name: str, program: str, seconds: int = 60) -> Any:
    return tool.Step(name, "look", lambda out: [sys.executable, "-c", program], seconds)


def test_every_test_and_benchmark_of_gpus_is_a_step(tool: ModuleType) -> None:
    steps = tool.steps()
    names = [step.name for step in steps]
    assert len(names) == len(set(names))
    tests = {path.stem for path in (ROOT / "tests" / "gpu").glob("test_*.py")}
    benchmarks = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if re.search(r'^NEEDS = "gpu"', path.read_text(), re.MULTILINE)
    }
    assert set(names) == tests | benchmarks | {"probe", "nvidia-smi", "doctor"}
    assert all(
        Path(word).exists()
        for step in steps
        for word in step.command(ROOT / "none")
        if word.startswith("tests/gpu/")
    )
    assert all(step.seconds <= 240 for step in steps)


def test_steps_come_by_group_and_a_new_file_has_one(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("tests/gpu", "benchmarks"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (
        "test_anything",
        "test_intrakernel_new",
        "test_intrakernel_merged",
        "test_cuda_truth",
        "test_cuda_records",
        "test_cuda_exits",
    ):
        (tmp_path / "tests" / "gpu" / f"{name}.py").touch()
    for name in ("gpu_launch", "intrakernel_new", "gpu_other"):
        (tmp_path / "benchmarks" / f"{name}.py").write_text('NEEDS = "gpu"\n')
    (tmp_path / "benchmarks" / "of_the_cpu.py").touch()
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert [(step.group, step.name) for step in tool.steps()] == [
        ("probe", "probe"),
        ("look", "nvidia-smi"),
        ("look", "doctor"),
        ("look", "test_cuda_records"),
        ("truth", "test_cuda_truth"),
        ("cost", "gpu_launch"),
        ("programs", "test_cuda_exits"),
        ("inside", "test_intrakernel_merged"),
        ("inside", "test_intrakernel_new"),
        ("inside", "intrakernel_new"),
        ("rare", "test_anything"),
        ("rare", "gpu_other"),
    ]
    assert "--quick" in next(step for step in tool.steps() if step.name == "gpu_launch").command(tmp_path)


def test_tests_run_side_by_side_unless_they_compare_times(tool: ModuleType, tmp_path: Path) -> None:
    commands = {step.name: step.command(tmp_path) for step in tool.steps()}
    assert "-n" in commands["test_cuda_exits"]
    assert "-n" not in commands["test_rules"]


def test_a_step_says_how_it_ended_and_what_it_said_is_kept(tool: ModuleType, tmp_path: Path) -> None:
    good = tool.run(_step(tool, "good", "print('well')"), tmp_path, dict(os.environ), 60)
    assert (good.how, good.said) == ("ok", "well")
    assert (
        tool.run(_step(tool, "bad", "raise SystemExit('ill')"), tmp_path, dict(os.environ), 60).how
        == "failed"
    )
    absent = tool.run(
        tool.Step("absent", "look", lambda out: ["no-such-program"], 5), tmp_path, dict(os.environ), 60
    )
    assert absent.how == "failed"
    assert "no-such-program" in absent.said
    assert tool.ending(tmp_path / "bad.log", 20) == ["ill"]


def test_a_step_whose_tests_were_all_skipped_did_not_go_well(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\ndef test_that(): pytest.skip('not here')\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={tmp_path / 'it.xml'}",
        "test_it.py",
    ]
    step = tool.Step(
        "it", "look", lambda out: ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(tmp_path), *command]
    )
    assert tool.run(step, tmp_path, dict(os.environ), 60).how == "skipped"
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_that(): pytest.skip('not here')\ndef test_this(): pass\n"
    )
    assert tool.run(step, tmp_path, dict(os.environ), 60).how == "ok"


@pytest.mark.slow
def test_a_step_that_hangs_is_stopped_with_what_it_started(tool: ModuleType, tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'new')!r}, 'w').write(str(child.pid)); os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'child')!r})\n"
        "print('here', flush=True); time.sleep(600)"
    )
    assert tool.run(_step(tool, "hangs", program), tmp_path, dict(os.environ), 5).how == "stopped after 5 s"
    if (tmp_path / "child").exists():  # a machine may be too slow for it
        child = Path(f"/proc/{(tmp_path / 'child').read_text()}")
        deadline = time.monotonic() + 60
        while (
            child.exists()
            and "State:\tZ" not in (child / "status").read_text()
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        assert not child.exists() or "State:\tZ" in (child / "status").read_text()


@pytest.mark.slow
def test_tests_that_ended_before_a_step_was_stopped_are_kept(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import time\ndef test_this(): assert 1 == 2\ndef test_that(): time.sleep(600)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={tmp_path / 'it.xml'}",
        str(tmp_path),
    ]
    step = tool.Step("it", "look", lambda out: command)
    assert tool.run(step, tmp_path, dict(os.environ), 5).how == "stopped after 5 s"
    if "test_it" in (tmp_path / "it.log").read_text():  # a machine may be too slow for it
        assert importlib.import_module("gpu_results").failures(tmp_path / "it.xml") == [
            ("test_this", "assert 1 == 2")
        ]


@pytest.fixture(name="device")
def _device(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The tool as if there were a GPU, with nothing to build and three steps of which one fails."""
    monkeypatch.setattr(tool, "without_gpu", lambda: None)
    monkeypatch.setattr(tool.gpu_build, "install", lambda out, build: "built")
    monkeypatch.setattr(tool.gpu_build, "digest", lambda: "these")
    monkeypatch.setattr(tool.gpu_build, "PACK", tmp_path / "pack")
    monkeypatch.setattr(tool.gpu_build, "WORK", tmp_path / "work")
    monkeypatch.setattr(tool.signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("OUT", raising=False)
    programs = {"one": "print('1 passed')", "two": "raise SystemExit(1)", "three": "print('3 passed')"}
    steps = [
        _step(tool, name, f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} '); {program}")
        for name, program in programs.items()
    ]
    monkeypatch.setattr(tool, "steps", lambda: steps)
    return tmp_path / "out"


def _call(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, device: Path, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(device), *words])
    return int(tool.main())


def _ended(device: Path) -> dict[str, str]:
    return {
        name: ended["how"] for name, ended in json.loads((device / "ended.json").read_text())["steps"].items()
    }


def test_a_failed_step_is_told_and_the_next_one_runs(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _call(tool, monkeypatch, device) == 1
    assert _ended(device) == {"one": "ok", "two": "failed", "three": "ok"}
    assert "2 of 3 steps without fault" in capfd.readouterr().out
    assert json.loads((device / "facts.json").read_text())["python"] == sys.version.split()[0]


def test_a_step_without_time_left_does_not_start(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _call(tool, monkeypatch, device, "three", "--limit", "1") == 1
    assert re.search(r"^three +not run, no time left", capfd.readouterr().out, re.MULTILINE)


def test_the_next_call_leaves_out_what_went_well_unless_it_is_named(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _call(tool, monkeypatch, device)
    capfd.readouterr()
    assert _call(tool, monkeypatch, device, "look") == 1
    assert re.search(r"^one +ok, 0 s \(in an earlier call\)", capfd.readouterr().out, re.MULTILINE)
    assert _call(tool, monkeypatch, device, "one", "look") == 1
    assert (device.parent / "ran").read_text().split() == ["one", "two", "three", "two", "one", "two"]


def test_steps_run_again_on_other_sources(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _call(tool, monkeypatch, device, "one")
    monkeypatch.setattr(tool.gpu_build, "digest", lambda: "others")
    _call(tool, monkeypatch, device, "look")
    assert (device.parent / "ran").read_text().split() == ["one", "one", "two", "three"]


def test_the_next_machine_leaves_out_what_went_well_on_the_last_one(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _call(tool, monkeypatch, device)
    (device.parent / "pack").mkdir()
    (device / "ended.json").rename(device.parent / "pack" / "ended.json")
    _call(tool, monkeypatch, device)
    assert (device.parent / "ran").read_text().split() == ["one", "two", "three", "two"]
    assert _ended(device) == {"one": "ok", "two": "failed", "three": "ok"}


def test_all_results_are_packed_into_one_file(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OUT", str(tmp_path / "taken home"))
    _call(tool, monkeypatch, device)
    with tarfile.open(tmp_path / "taken home" / "results.tgz") as packed:
        assert {
            f"results/{name}" for name in ("ended.json", "facts.json", "summary.txt", "one.log", "two.log")
        } <= set(packed.getnames())


def test_results_are_packed_before_the_last_step_too(
    tool: ModuleType, device: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "PACK_EACH_S", 0)
    archive = tmp_path / "results.tgz"
    seen = f"import tarfile; assert 'results/one.log' in tarfile.open({str(archive)!r}).getnames()"
    monkeypatch.setattr(tool, "steps", lambda: [_step(tool, "one", "pass"), _step(tool, "two", seen)])
    assert _call(tool, monkeypatch, device, "--archive", str(archive)) == 0


def test_a_name_that_is_none_is_refused(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py", "nonsense"])
    with pytest.raises(SystemExit):
        tool.main()
    assert "no group or step nonsense" in capfd.readouterr().err
