"""The agent on aarch64: built by a cross compiler, run under qemu, its spool finished here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import SOURCES, nvtx_headers
from warpline.query import open as open_report
from warpline.report.finish import finish

pytestmark = [pytest.mark.require("aarch64"), pytest.mark.require("native")]

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
GXX = ("aarch64-linux-gnu-g++", "-O1", "-Wall", "-Wextra", "-Werror", "-std=c++20", f"-I{NATIVE / 'include'}", f"-I{NATIVE}")
QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")


def _sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((NATIVE / folder).glob("*.cpp"))]


def test_the_spool_writer_passes_its_tests(tmp_path: Path) -> None:
    program = tmp_path / "spool_test"
    subprocess.run([*GXX, NATIVE / "tests" / "spool_test.cpp", *_sources("spool"), "-static", "-o", program], check=True)
    done = subprocess.run([*QEMU, program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(" 0 failed\n")


def test_a_program_is_recorded_and_its_spool_read_here(tmp_path: Path) -> None:
    agent, program, spool = tmp_path / "libagent.so", tmp_path / "nvtx_core", tmp_path / "spool"
    options = ("-fPIC", "-shared", "-fno-rtti", "-ftls-model=initial-exec", "-fvisibility=hidden", '-DWARPLINE_VERSION="test"')
    headers = ("-isystem", nvtx_headers())
    subprocess.run([*GXX, *options, *headers, *_sources("spool", "agent", "agent/sources"), "-o", agent], check=True)
    subprocess.run(["aarch64-linux-gnu-gcc", *headers, SOURCES / "nvtx_core.c", "-o", program, "-ldl", "-pthread"], check=True)
    spool.mkdir()
    environment = os.environ | {"NVTX_INJECTION64_PATH": str(agent), "WARPLINE_SPOOL": str(spool)}
    done = subprocess.run([*QEMU, program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("levels 0 1 1 0 -1\n")
    finish(spool, tmp_path / "arm.warpline")
    with open_report(tmp_path / "arm.warpline") as report:
        names = report.table("nvtx_ranges").column("message").to_pylist()
        assert names.count("outer") == 1
        assert "w\u00efde \U0001f600" in names
        assert report.table("nvtx_marks").num_rows == 7
