"""The child that finishes: which interpreter, which environment."""

from __future__ import annotations

import sys

import pytest

from warplens.recording.finishing.finisher import clean_environment, python


def test_the_child_is_not_recorded_and_not_made_to_talk() -> None:
    base = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "NVTX_INJECTION64_PATH": "/agent.so",
        "WARPLENS_SPOOL": "/spool",
        "WARPLENS_NVTX_CHAIN": "/tool.so",
        "PYTHONPATH": "/here",
        "PYTHONHOME": "/there",
        "PYTHONWARNINGS": "error",
        "PYTHONINSPECT": "1",
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    assert clean_environment(base) == {
        "PATH": "/bin",
        "HOME": "/home/me",
        "PYTHONPATH": "/here",
        "PYTHONHOME": "/there",
    }


@pytest.mark.parametrize("name", ["", "/usr/bin/blender", None])
def test_only_an_interpreter_is_started(name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert python() == sys.executable
    monkeypatch.setattr(sys, "executable", name)
    with pytest.raises(FileNotFoundError, match="not a Python interpreter"):
        python()


def test_an_application_frozen_with_its_interpreter_is_not_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(FileNotFoundError):
        python()
