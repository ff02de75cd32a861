"""What `make gpu` keeps of its steps: an archive that is small enough, and a summary that names what failed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.optional_dependencies import ROOT


@pytest.fixture(name="tool")
def _tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("gpu_results")


def _packed(archive: Path) -> set[str]:
    with tarfile.open(archive) as file:
        return set(file.getnames())


def test_the_largest_files_are_left_out_of_an_archive_and_named(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results" / "deep").mkdir(parents=True)
    for name, count in (("deep/huge", 3_000_000), ("large", 90_000), ("middle", 30_000), ("small", 100)):
        (tmp_path / "results" / name).write_bytes(os.urandom(count))
    (tmp_path / "results" / "text").write_bytes(
        b"the same again\n" * 20_000
    )  # larger than one that is left out, until it is packed
    archive = tmp_path / "results" / "results.tgz"
    left = tool.pack(tmp_path / "results", archive, 100_000)
    assert left == ["deep/huge (2.9 MiB)", "large (0.1 MiB)"]
    assert _packed(archive) == {"results/middle", "results/small", "results/text"}
    assert archive.stat().st_size <= 100_000
    assert tool.pack(tmp_path / "results", archive) == []  # the archive itself is no result
    assert _packed(archive) == {
        f"results/{name}" for name in ("deep/huge", "large", "middle", "small", "text")
    }


def test_the_summary_has_a_line_for_each_step_and_each_failed_test(tool: ModuleType, tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.parametrize('n', range(30))\ndef test_it(n): assert n < 2, f'{n} is large'\n"
    (tmp_path / "test_it.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={tmp_path / 'two.xml'}",
        "test_it.py",
    ]
    subprocess.run(command, cwd=tmp_path, check=False, capture_output=True)
    results = tool.Results(tmp_path, "these")
    results.put("one", tool.Ended("ok", 1.6, "3 passed in 1.2s"))
    results.put("two", tool.Ended("failed", 3, "28 failed, 2 passed"))
    lines = results.summary(["one", "two"])
    assert " ".join(lines[0].split()) == "one ok, 2 s 3 passed in 1.2s"
    assert lines[2].strip() == "test_it[2]: AssertionError: 2 is large"
    assert lines[-1].strip() == "and 4 more"
    assert len(lines) == 2 + 24 + 1


def test_a_damaged_file_of_results_counts_as_none(tool: ModuleType, tmp_path: Path) -> None:
    for text in (
        "",
        "[]",
        '{"tree": "these"}',
        '{"tree": "these", "steps": {"one": {"unknown": 1}}}',
        '{"tree": "these", "steps": 3}',
    ):
        (tmp_path / "ended.json").write_text(text)
        assert tool.Results(tmp_path, "these").steps == {}
    (tmp_path / "two.xml").write_text("<testsuites><testcase")
    assert tool.failures(tmp_path / "two.xml") == []
    assert not tool.only_skipped(tmp_path / "two.xml")
