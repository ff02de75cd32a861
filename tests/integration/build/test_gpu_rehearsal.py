"""`make gpu` on a bare machine, rehearsed: a fresh checkout, few packages, no network, and the look-alike CUDA for a GPU."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.native.fake_cuda import FakeCuda
from tests.support.native.native_build import sharing_objects
from tests.support.optional_dependencies import ROOT
from tests.support.thorough import THOROUGH

pytestmark = [pytest.mark.require("git", "native", "duckdb", "gcc", "g++"), pytest.mark.timeout(600)]

# What a machine with PyTorch has, as far as it matters here. Of these and what they need; DuckDB is not among them.
INSTALLED = ("click", "cmake", "ninja", "numpy", "nvidia-nvtx", "pyarrow", "pytest", "pytest-timeout", "rich")


@dataclass
class Machine:
    """A machine with the files of this checkout that git does not ignore, a Python with few packages, and what was packed for it."""

    root: Path
    python: Path
    alone: list[str]

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Start what the pack brought, as a user would, without a network."""
        environment = {
            **FakeCuda().environment(),
            "PATH": f"{self.python.parent}:{self.python.parent.parent}/stand-ins:/usr/bin:/bin",
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            **variables,
        }
        return subprocess.run(
            [*self.alone, "sh", "build/gpu/run.sh", *words],
            cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=500,
        )  # fmt: skip

    def ended(self) -> dict[str, str]:
        """How each step ended."""
        found = json.loads((self.root / "build" / "gpu-run" / "results" / "ended.json").read_text())
        return {name: ended["how"] for name, ended in found["steps"].items()}

    def forget(self) -> None:
        """Be as fresh as before the first call."""
        for name in ("build/gpu-run", "src/warplens/_lib"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        for binding in (self.root / "src" / "warplens" / "nvtx").glob("_binding*.so"):
            binding.unlink()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        alone = importlib.import_module("wheel_trial").without_network()
        if not alone:
            pytest.skip("the network cannot be taken away here (unshare is refused)")
        root = folder / "checkout"
        tracked = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for name in filter(None, tracked.split("\0")):
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        pack = root / "build" / "gpu"
        pack.mkdir(parents=True)
        importlib.import_module("gpu_pack").libraries(pack)
    made_wheel("duckdb", pack / "wheels")
    yield Machine(root, made_python(folder / "python"), alone)
    shutil.rmtree(folder, ignore_errors=True)


def made_python(folder: Path) -> Path:
    """An environment of its own, whose packages are links to those of ours."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    for name in needed(INSTALLED):
        for file in importlib.metadata.files(name) or []:
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                (site / file).symlink_to(str(file.locate()))
            elif file.name in ("cmake", "ninja"):
                (folder / "bin" / file.name).symlink_to(Path(str(file.locate())).resolve())
    stand_in = folder / "stand-ins" / "nvidia-smi"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/sh\necho stands for a GPU\n")
    stand_in.chmod(0o755)
    return folder / "bin" / "python"


def needed(names: tuple[str, ...]) -> set[str]:
    """These packages and all that they need here."""
    packaging = pytest.importorskip("packaging.requirements")
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for text in importlib.metadata.requires(name) or []:
            requirement = packaging.Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                left.append(requirement.name)
    assert "duckdb" not in found
    return found


def made_wheel(name: str, folder: Path) -> None:
    """A wheel of a package as it is installed here: what pip would download for another machine."""
    folder.mkdir()
    found = importlib.metadata.distribution(name)
    (tag,) = [line.partition(": ")[2] for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag")][:1]
    with zipfile.ZipFile(folder / f"{name}-{found.version}-{tag}.whl", "w") as wheel:
        for file in found.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                wheel.write(str(file.locate()), file)


@pytest.fixture(name="fresh")
def _fresh(machine: Machine) -> Machine:
    machine.forget()
    return machine


def quicker() -> dict[str, str]:
    """Variables that let the build take what was compiled before; where all is to be tried, nothing is taken."""
    return {} if THOROUGH else {name: value for name, value in sharing_objects().items() if name.endswith("LAUNCHER")}


def test_a_bare_machine_builds_records_converts_and_analyses(fresh: Machine, tmp_path: Path) -> None:
    for name in ("duckdb", "warplens", "mypy"):
        assert subprocess.run([fresh.python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 1, name
    began = time.monotonic()
    done = fresh.run("look", OUT=str(tmp_path), **quicker())
    print(f"from nothing to the analysis: {time.monotonic() - began:.0f} s\n{done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gpu: built, " in done.stdout
    assert fresh.ended() == {
        "nvidia-smi": "ok",
        "doctor": "ok",
        "test_cuda_first": "ok",
        "test_torch_nvtx": "skipped",  # PyTorch is not here
        "test_cuda_records": "skipped",
    }
    results = fresh.root / "build" / "gpu-run" / "results"
    said = json.loads((results / "ended.json").read_text())["steps"]["test_cuda_first"]["said"]
    assert said.startswith("3 passed in")
    with tarfile.open(tmp_path / "results.tgz") as packed:
        assert {"results/ended.json", "results/build.log", "results/test_cuda_first.xml"} <= set(packed.getnames())

    again = fresh.run("look", **quicker())
    assert "gpu: built before, of the same sources" in again.stdout
    assert again.stdout.count("(in an earlier call)") == 3, again.stdout


def test_without_a_compiler_the_packed_libraries_are_used(fresh: Machine) -> None:
    done = fresh.run("doctor", "test_cuda_first", CXX="/bin/false", CC="/bin/false")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gpu: the build failed (see build.log): the libraries of build/gpu are in place, " in done.stdout
    assert fresh.ended() == {"doctor": "ok", "test_cuda_first": "ok"}
    for path in ("_lib/libwarplens_agent.so", "_lib/libwarplens_reader.so"):
        assert (fresh.root / "src" / "warplens" / path).read_bytes() == (fresh.root / "build" / "gpu" / "native" / path).read_bytes()


def test_without_compiler_and_pack_the_tool_says_so(fresh: Machine) -> None:
    packed = fresh.root / "build" / "gpu" / "native"
    packed.rename(packed.with_name("elsewhere"))
    try:
        done = fresh.run("doctor", CXX="/bin/false", CC="/bin/false")
    finally:
        packed.with_name("elsewhere").rename(packed)
    assert done.returncode == 1
    assert "build/gpu has no libraries" in done.stdout
    assert fresh.ended() == {"doctor": "failed"}


def test_only_the_binding_needs_the_headers_of_python(machine: Machine, tmp_path: Path) -> None:
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        pytest.skip(f"{headers} has no Python.h that could be hidden")
    hide: list[str | Path] = [
        "unshare",
        *([] if os.geteuid() == 0 else ["-r"]),
        "-m",
        "sh",
        "-c",
        'mount -t tmpfs none "$1" && shift && exec "$@"',
        "sh",
    ]
    if subprocess.run([*hide, headers, "test", "!", "-e", headers / "Python.h"], capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")

    def configured(parts: str) -> subprocess.CompletedProcess[str]:
        command = [*hide, headers, machine.python.with_name("cmake"), "-S", machine.root, "-B", tmp_path / parts.replace(";", "-")]
        words = [f"-DPython_EXECUTABLE={machine.python}", f"-DWARPLENS_PARTS={parts}"]
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False)

    assert (without := configured("spool;agent;reader;device")).returncode == 0, without.stderr
    assert "Python" in configured("spool;agent;reader;device;bindings").stderr
