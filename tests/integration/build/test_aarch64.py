"""The agent on aarch64: built by a cross compiler, run under qemu, its spool finished here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.native.native_build import build_agent, build_spool_test, build_stub, build_target
from tests.support.programs.process_register import new_spool, read_notes
from warplens.convert.finish import finish
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("aarch64"), pytest.mark.require("native")]

GXX, GCC = "aarch64-linux-gnu-g++", "aarch64-linux-gnu-gcc"
QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")


def test_the_spool_writer_passes_its_tests(tmp_path: Path) -> None:
    program = build_spool_test(tmp_path / "spool_test", GXX, ["-static"])
    done = subprocess.run([*QEMU, program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(" 0 failed\n")


def test_a_program_is_recorded_and_its_spool_read_here(tmp_path: Path) -> None:
    agent = build_agent(tmp_path / "libagent.so", GXX, ["-Wall", "-Wextra", "-Werror", "-ftls-model=initial-exec"])
    program = build_target("nvtx_core", tmp_path / "nvtx_core", GCC)
    spool = tmp_path / "spool"
    spool.mkdir()
    environment = os.environ | {"NVTX_INJECTION64_PATH": str(agent), "WARPLENS_SPOOL": str(spool)}
    done = subprocess.run([*QEMU, program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("levels 0 1 1 0 -1\n")
    finish(spool, tmp_path / "arm.warplens")
    with open_report(tmp_path / "arm.warplens") as report:
        names = report.table("nvtx_ranges").column("message").to_pylist()
        assert names.count("outer") == 1
        assert "w\u00efde \U0001f600" in names
        assert report.table("nvtx_marks").num_rows == 7


@pytest.mark.parametrize("cpu", [False, True], ids=["plain", "cpu"])
def test_the_stub_follows_processes(tmp_path: Path, cpu: bool) -> None:
    stub = build_stub(tmp_path / "stub.so", GCC, ["-Wall", "-Wextra", "-Werror"], cpu=cpu)
    program = build_target("tree", tmp_path / "tree", GCC)
    spool = new_spool(tmp_path)
    variables = [word for name, value in (("LD_PRELOAD", stub), ("WARPLENS_SPOOL", spool)) for word in ("-E", f"{name}={value}")]
    for way in ("waits", "cancelled"):
        done = subprocess.run([*QEMU, *variables, program, way], capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ""
    notes = read_notes(spool)
    assert [note.status for note in notes if note.kind == "waited"] == [1, 137, 3, 4, 5, 143, 7, 8, 137]
    assert [note.status for note in notes if note.kind == "exit"] == [1, 3, 4, 5, 7, 8, 0, 0]
    assert [note.texts[2] for note in notes if note.kind == "program"] == ["waits", "cancelled"]
