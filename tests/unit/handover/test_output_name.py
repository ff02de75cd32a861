"""From `-o NAME` to the report's path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warplens.errors import ReportError, UsageError
from warplens.handover.output_name import claim, expand, with_suffix


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("a", "a"),
        ("%h-%n", "node1-7"),
        ("100%%", "100%"),
        ("%%p", "%p"),
        ("r%q{RANK}", "r3"),
        ("%q{JOB}", "a_b"),
        ("%q{EMPTY}x", "x"),
        ("Läufe/日 %n", "Läufe/日 7"),
    ],
)
def test_fields(template: str, name: str) -> None:
    environment = {"RANK": "3", "JOB": "a/b", "EMPTY": ""}
    assert expand(template, number=7, host="node1", environment=environment) == name


def test_the_process_id() -> None:
    assert expand("a%pb", number=1, host="h", environment={}) == f"a{os.getpid()}b"


@pytest.mark.parametrize("template", ["%x", "a%", "%q{NONE}", "%q", "%q{"])
def test_wrong_fields(template: str) -> None:
    with pytest.raises(UsageError, match="-o "):
        expand(template, number=1, host="h", environment={})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("x", "x.warplens"),
        ("x.warplens", "x.warplens"),
        ("x.nsys-rep", "x.warplens"),
        ("x.qdrep", "x.warplens"),
        ("baseline.out", "baseline.out.warplens"),
        ("v1.2", "v1.2.warplens"),
        ("a b/é", "a b/é.warplens"),
        ("d/.warplens", "d/.warplens.warplens"),
    ],
)
def test_suffixes(name: str, path: str) -> None:
    assert with_suffix(name) == Path(path)


@pytest.mark.parametrize("name", ["", "dir/", ".", ".."])
def test_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="needs a name"):
        with_suffix(name)


def test_the_first_free_number_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report2.warplens").mkdir()
    claimed = [claim(None, host="h") for _ in range(3)]
    assert claimed == [(tmp_path / f"report{number}.warplens", True) for number in (1, 3, 4)]
    assert claim("r%n", host="h") == (tmp_path / "r1.warplens", True)


def test_an_existing_name_is_not_claimed(tmp_path: Path) -> None:
    assert claim(f"{tmp_path}/sub/x", host="h") == (tmp_path / "sub" / "x.warplens", True)
    assert claim(f"{tmp_path}/sub/x", host="h") == (tmp_path / "sub" / "x.warplens", False)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match="Cannot create the report"):
        claim(f"{tmp_path}/file/x", host="h")
    with pytest.raises(ReportError, match="Cannot create the report"):
        claim("/proc/x", host="h")
