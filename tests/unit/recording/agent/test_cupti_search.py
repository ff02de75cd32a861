"""Which libcupti a program is offered: that of its own Python first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warplens.recording.agent.cupti_search import cupti_variables, libraries
from warplens.recording.agent.interpreter import interpreter_of


def _library(root: Path, *names: str) -> list[Path]:
    paths = [root / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(path))
    return paths


def _python(
    prefix: Path, *, version: str = "3.11", system: bool | None = None, target: Path | None = None
) -> Path:
    """A Python without anything in it; a virtual environment where `system` says whether it sees the packages of `target`."""
    path = prefix / "bin" / "python"
    path.parent.mkdir(parents=True)
    (prefix / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    if target is not None:
        path.symlink_to(target)
        (prefix / "pyvenv.cfg").write_text(
            f"home = x\ninclude-system-site-packages = {str(system).lower()}\nversion = {version}.4\n"
        )
    else:
        path.write_text("")
        path.chmod(0o755)
    return path


def _found(program: Path, environment: dict[str, str], *installed: Path) -> list[Path]:
    return libraries(str(program), environment, tuple(map(str, installed)))


def test_the_packages_of_the_programs_python_come_first(tmp_path: Path) -> None:
    python = _python(tmp_path / "env")
    site = tmp_path / "env/lib/python3.11/site-packages"
    wheels = _library(
        site,
        "nvidia/cu13/lib/libcupti.so.13",
        "nvidia/cuda_cupti/lib/libcupti.so.12",
        "torch/lib/libcupti-1a2b.so.12",
    )
    (site / "nvidia/cu13/lib/libcheckpoint.so").touch()
    toolkit = _library(
        tmp_path, "cuda-12.4/extras/CUPTI/lib64/libcupti.so.12", "cuda-9.0/lib64/libcupti.so.9.0"
    )
    assert _found(python, {}, tmp_path / "cuda-*") == [*wheels, *toolkit]


def test_the_loaders_path_comes_before_packages_and_toolkits(tmp_path: Path) -> None:
    python = _python(tmp_path / "env")
    wheels = _library(tmp_path / "env/lib/python3.11/site-packages", "nvidia/cu13/lib/libcupti.so.13")
    chosen = _library(tmp_path, "chosen/libcupti.so.12")
    toolkit = _library(tmp_path, "kit/lib64/libcupti.so.13")
    environment = {"LD_LIBRARY_PATH": f":relative:{tmp_path / 'chosen'}", "CUDA_HOME": str(tmp_path / "kit")}
    assert _found(python, environment) == [*chosen, *wheels, *toolkit]


def test_newer_versions_come_first_and_links_count_once(tmp_path: Path) -> None:
    folder = tmp_path / "cuda/lib64"
    real, old = _library(folder, "libcupti.so.2024.1.0", "libcupti.so.11.8")
    (folder / "libcupti.so.12").symlink_to(real)
    (folder / "libcupti.so").symlink_to("libcupti.so.12")
    _library(tmp_path / "cuda/lib64/stubs", "libcupti.so")
    assert _found(tmp_path / "program", {"PATH": ""}, tmp_path / "cuda") == [real, old]


def test_a_virtual_environment_sees_the_system_only_if_it_says_so(tmp_path: Path) -> None:
    base = _python(tmp_path / "base")
    theirs = _library(tmp_path / "base/lib/python3.11/site-packages", "nvidia/cu13/lib/libcupti.so.13")
    mine = _library(
        tmp_path / "home/.local/lib/python3.11/site-packages", "nvidia/cuda_cupti/lib/libcupti.so.12"
    )
    home = {"HOME": str(tmp_path / "home")}
    assert _found(_python(tmp_path / "closed", system=False, target=base), home) == []
    assert _found(_python(tmp_path / "open", system=True, target=base), home) == [*mine, *theirs]
    assert _found(base, home) == [*mine, *theirs]


def test_conda_and_the_variables_of_toolkits_count(tmp_path: Path) -> None:
    python = _python(tmp_path / "conda")
    conda = _library(tmp_path / "conda", "lib/libcupti.so.12")
    toolkit = _library(tmp_path / "kit", "targets/x86_64-linux/lib/libcupti.so.11.8")
    assert _found(python, {"CUDA_HOME": str(tmp_path / "kit")}) == [*toolkit, *conda]


@pytest.mark.parametrize("line", ["#!{python}", "#!/usr/bin/env python", "#! /usr/bin/env -S python -u"])
def test_a_script_names_its_python(line: str, tmp_path: Path) -> None:
    python = _python(tmp_path / "env")
    script = tmp_path / "torchrun"
    script.write_text(line.format(python=python) + "\nimport torch\n")
    assert interpreter_of(str(script), {"PATH": str(python.parent)}) == python


def test_any_other_program_may_start_the_python_that_path_finds(tmp_path: Path) -> None:
    python = _python(tmp_path / "env")
    assert interpreter_of("/bin/sh", {"PATH": f"/no/such{os.pathsep}{python.parent}"}) == python
    assert interpreter_of("/bin/sh", {"PATH": "/no/such"}) is None


def test_variables_name_folders_of_cupti(tmp_path: Path) -> None:
    first, second = _library(tmp_path, "kit/lib64/libcupti.so.12", "kit/lib/libcupti.so.11")
    _library(tmp_path, "with:colon/lib64/libcupti.so.12")
    environment = {"PATH": "", "CUDA_HOME": str(tmp_path / "kit"), "CUDA_PATH": str(tmp_path / "with:colon")}
    listed = cupti_variables(None, "program", environment)["WARPLENS_CUPTI_SEARCH"].split(":")
    assert listed[:2] == [str(first), str(second)]
    assert not any("colon" in path for path in listed)
    assert cupti_variables(tmp_path / "mine.so", "program", environment) == {
        "WARPLENS_CUPTI": str(tmp_path / "mine.so")
    }
