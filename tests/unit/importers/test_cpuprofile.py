"""Profiles of V8 become samples; the file below is of the form that `node --cpu-prof` of Node.js 18 writes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import warplens
from warplens.errors import WarplensError
from warplens.importers.importing import format_of, import_file


def node(number: int, name: str, children: list[int], url: str = "", line: int = -1) -> dict[str, Any]:
    place = {"functionName": name, "scriptId": "0", "url": url, "lineNumber": line, "columnNumber": -1}
    return {"id": number, "callFrame": place, "hitCount": 0, "children": children}


PROFILE = {
    "nodes": [
        node(1, "(root)", [2, 3, 5]),
        node(2, "(program)", []),
        node(3, "main", [4], "file:///app/busy.js", 0),
        node(4, "fib", [], "file:///app/busy.js", 6),
        node(5, "(idle)", []),
    ],
    "startTime": 1000,
    "endTime": 8000,
    "samples": [2, 4, 4, 3, 5],
    "timeDeltas": [1000, 500, 1000, 1000, 2000],
}


def imported(folder: Path, profile: Any) -> warplens.Report:
    path = folder / "run.cpuprofile"
    path.write_text(json.dumps(profile), encoding="utf-8")
    assert format_of(path).id == "cpuprofile"
    import_file(path, folder / "run.warplens")
    return warplens.open(folder / "run.warplens")


def test_nodes_are_frames_and_ticks_of_one_node_are_one_row(tmp_path: Path) -> None:
    with imported(tmp_path, PROFILE) as report:
        frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
        samples = report.table("samples").to_pylist()
    names = {frames[row["stack"]]["function"] if row["stack"] is not None else "": row for row in samples}
    assert {name: (row["start"], row["count"], row["weight"]) for name, row in names.items()} == {
        "(program)": (1_000_000, 1, 500_000),
        "fib": (1_500_000, 2, 2_000_000),
        "main": (3_500_000, 1, 2_000_000),
        "": (5_500_000, 1, 0),
    }
    fib = frames[names["fib"]["stack"]]
    assert (fib["file"], fib["line"], frames[fib["parent"]]["function"]) == ("/app/busy.js", 7, "main")
    assert [row["on_cpu"] for row in samples] == [True, True, True, False]


def test_samples_of_nodes_that_are_missing_are_counted(tmp_path: Path) -> None:
    with imported(tmp_path, PROFILE | {"samples": [2, 9, 9, 3, 5]}) as report:
        (row,) = report.table("diagnostics").to_pylist()
    assert (row["severity"], row["count"]) == ("warning", 2)


def test_nodes_in_a_circle_end(tmp_path: Path) -> None:
    circle = [node(1, "(root)", [2]), node(2, "a", [3]), node(3, "b", [2])]
    with imported(tmp_path, PROFILE | {"nodes": circle, "samples": [3] * 5}) as report:
        assert report.tables["samples"] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": []},
        {"timeDeltas": [1]},
        {"timeDeltas": ["1"] * 5},
        {"timeDeltas": [1 << 52] * 5},
        {"samples": None},
        {"nodes": [{"id": 1, "callFrame": {}}]},
    ],
)
def test_a_broken_profile_is_refused_by_name(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(WarplensError, match=r"run\.cpuprofile"):
        imported(tmp_path, PROFILE | wrong)


@pytest.mark.slow
def test_damaged_files_end_in_a_report_or_an_error(tmp_path: Path) -> None:
    chance, whole = random.Random(5), bytearray(json.dumps(PROFILE).encode())
    for number in range(60):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path = tmp_path / f"{number}.cpuprofile"
        path.write_bytes(damaged[: chance.choice((len(damaged), chance.randrange(len(damaged))))])
        told = str(path)
        try:
            import_file(path, tmp_path / f"{number}.warplens")
        except WarplensError as error:
            told = str(error)
        assert str(path) in told
