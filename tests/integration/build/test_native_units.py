"""The native unit tests under the address sanitizer; those of signal handlers step by step."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from tests.support.native.native_build import NATIVE, build_spool_test, sources
from tests.support.native.sanitizing import MEMORY, PATIENCE_S, THREADS, WITHOUT_LEAKS
from tests.support.thorough import few

pytestmark = [pytest.mark.require("gcc"), pytest.mark.timeout(1200)]  # an instrumented build on a busy machine


# The last two are as long as the others together.
WRITER = [
    "spool_test",
    "names_test",
    "payload_test",
    "window_test",
    "buffers_test",
    "limits_test",
    "space_test",
    "days_test",
    "recorder_test",
    "wide_test",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where they are built, their common parts once."""
    return tmp_path_factory.mktemp("sanitized")


@pytest.mark.parametrize("name", few(WRITER, 4))
def test_the_spool_writer(name: str, folder: Path, tmp_path: Path) -> None:
    unit_tests(build_spool_test(folder / name, words=MEMORY, name=name, folder=folder / "memory"), tmp_path)


def test_names_without_end_take_little_memory(tmp_path: Path) -> None:
    unit_tests(build_spool_test(tmp_path / "names_test", words=("-O2",), name="names_test"), tmp_path)


@pytest.mark.parametrize("name", few(["cuda_fields_test", "cuda_records_test"]))
def test_the_records_of_cuda(name: str, folder: Path, tmp_path: Path) -> None:
    more = [*sources("agent/sources/cuda"), NATIVE / "agent" / "hooks" / "cupti" / "calls.cpp"]
    unit_tests(build_spool_test(folder / name, words=MEMORY, name=name, folder=folder / "memory", more=more), tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", [THREADS, MEMORY], ids=["threads", "memory"])
def test_operators_of_pytorch_while_windows_open_and_close(words: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    names = ("changing", "inputs", "ops", "windows")
    more = [path for path in sources("agent/sources/torch") if path.stem in names]
    more.append(NATIVE / "agent" / "python" / "sampling" / "pace.cpp")
    kind = "threads" if words is THREADS else "memory"
    made = build_spool_test(folder / f"torch-{kind}", words=words, name="torch_test", folder=folder / kind, more=more)
    unit_tests(made, tmp_path)


@pytest.mark.exhaustive  # importers read traces with it all the time
def test_the_reader_of_traces(folder: Path, tmp_path: Path) -> None:
    more = [path for path in sources("reader/chrome") if path.stem in ("json_text", "trace_events", "trace_fields", "trace_reader")]
    made = build_spool_test(folder / "trace_reader", words=MEMORY, name="trace_reader_test", folder=folder / "memory", more=more)
    unit_tests(made, tmp_path)


def unit_tests(program: Path, folder: Path) -> None:
    """Run native unit tests: all must pass, and the sanitizer must have nothing to say."""
    done = subprocess.run(
        [program], cwd=folder, env=os.environ | WITHOUT_LEAKS, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" 0 failed\n")


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.machine() != "x86_64", reason="single steps are those of x86-64")
def test_signal_handlers_between_any_two_instructions(tmp_path: Path) -> None:
    """Without a sanitizer, whose own instructions would be stepped through too."""
    program = build_spool_test(tmp_path / "signals_test", words=("-O2",), name="signals_test")
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" 0 failures\n")


def test_recording_adds_little_to_the_resident_size(tmp_path: Path) -> None:
    """Without a sanitizer, which makes pages resident itself."""
    unit_tests(build_spool_test(tmp_path / "resident_test", words=("-O2",), name="resident_test"), tmp_path)
