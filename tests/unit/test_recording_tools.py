"""tools/recording_tests.py and what it stands on: counts of a report, what is kept, what a machine without an archive is told."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
_REPORT = """<testsuites><testsuite>
<testcase classname="a" name="good"/><testcase classname="a" name="other"/>
<testcase classname="a" name="left"><skipped/></testcase>
<testcase classname="a" name="bad"><failure/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    module = importlib.import_module("recording_tests")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept.json")
    (tmp_path / "junit.xml").write_text(_REPORT)
    return module


def test_a_failure_counts_and_one_that_passed_again_is_unsteady(tool: ModuleType, tmp_path: Path) -> None:
    failed = tool.read(tmp_path / "junit.xml", 1, "", "3.15.2", "a system", 9.6)
    assert (failed.passed, failed.skipped, failed.failed, failed.unsteady, failed.seconds) == (
        2,
        1,
        ["a::bad"],
        [],
        10,
    )
    unsteady = tool.read(tmp_path / "junit.xml", 0, "", "3.15.2", "a system", 9.6)
    assert (unsteady.passed, unsteady.skipped, unsteady.failed, unsteady.unsteady) == (3, 1, [], ["a::bad"])


def test_a_run_that_broke_off_is_a_failure(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(
        '<testsuites><testsuite><testcase classname="a" name="good"/></testsuite></testsuites>'
    )
    assert tool.read(tmp_path / "junit.xml", 3, "the end\n", "3.15.2", "a system", 1).failed == [
        "pytest ended with 3: the end"
    ]


def test_results_of_other_sources_count_no_more(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {
        "version": "3.15.2",
        "system": "s",
        "passed": 2,
        "skipped": 0,
        "failed": [],
        "unsteady": [],
        "seconds": 1,
    }
    tool.RESULTS.write_text(json.dumps({"sources": "these", "pythons": {"3.15": one}}))
    monkeypatch.setattr(tool, "digest", lambda: "these")
    assert tool.results()["3.15"].passed == 2
    monkeypatch.setattr(tool, "digest", lambda: "others")
    assert tool.results() == {}


def test_only_what_passed_is_kept(tool: ModuleType) -> None:
    tool.KEPT.write_text(json.dumps({"3.9": {"version": "3.9.1"}, "3.15": {"version": "3.15.1"}}))
    good = tool.Result("3.14.1", "s", 5, 1, [], [], 1)
    tool.keep({"3.15": tool.Result("3.15.2", "s", 4, 1, ["a::bad"], [], 1), "3.14": good, "3.14t": good})
    kept = json.loads(tool.KEPT.read_text())
    assert list(kept) == ["3.9", "3.14", "3.14t"]
    assert kept["3.14"] == {"version": "3.14.1", "system": "s", "passed": 5, "skipped": 1}


def test_the_sources_of_this_checkout_have_a_digest_of_their_own(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["src/warplens/errors.py", "tests/tested_pythons.json", "docs/README.md"]
    monkeypatch.setattr(tool.unstable, "sources", lambda: names)
    first = tool.digest()
    names.append("native/CMakeLists.txt")
    assert tool.digest() != first


def test_the_archive_is_the_one_of_this_machine(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Other\tOther\thttp://other.invalid/\nDebian\tDebian-Security\thttp://a.invalid/s/\nDebian\tDebian\thttp://a.invalid/debian/\n"
    monkeypatch.setattr(tool.unstable, "_output", lambda *command: said)
    assert tool.unstable.mirror() == "http://a.invalid/debian/"
    monkeypatch.setattr(tool.unstable, "_output", lambda *command: "")
    with pytest.raises(tool.unstable.Lacking, match="knows no archive"):
        tool.unstable.mirror()


def test_without_root_it_says_so_and_nothing_ran(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool.unstable.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(tool, "FOLDER", tmp_path)
    monkeypatch.setattr(tool.sys, "argv", ["recording_tests.py", "unstable"])
    monkeypatch.setattr(tool, "digest", lambda: "these")
    assert tool.main() == tool.unstable.LACKING
    assert "no root file system of Debian's unstable: it needs root" in capsys.readouterr().err


def test_a_free_threaded_one_has_its_name_whatever_its_file_is_called(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {(3, 14): Path("/a/python3.14"), (3, 14, "t"): Path("/b/python3.14")}
    monkeypatch.setattr(tool, "pythons", lambda: there)
    monkeypatch.setattr(tool.free_threaded, "make", lambda: 0)
    (here,) = tool.places(["here", "free-threaded"])
    assert here.pythons() == {"3.14": "/a/python3.14", "3.14t": "/b/python3.14"}
    (without_gil,) = tool.places(["free-threaded"])
    assert without_gil.pythons() == {"3.14t": "/b/python3.14"}


def test_pythons_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tool: ModuleType
) -> None:
    pythons = importlib.import_module("pythons")
    monkeypatch.setattr(
        pythons, "pythons", lambda: {(3, 12): Path("/a/python3.12"), (3, 14): Path("/a/python3.14")}
    )
    monkeypatch.setattr("sys.argv", ["pythons.py"])
    monkeypatch.setenv("WARPLENS_PYTHONS", "3.14,3.15")
    pythons.main()
    assert capsys.readouterr().out == "3.14 /a/python3.14\n"
