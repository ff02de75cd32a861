"""Rows inside kernels in the viewer: where they stand, how many there are, and what is said of a region."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from warplens.report.report import Report
from warplens.testing.kernel_insides import DrawnLaunch, launch_tables, pipeline
from warplens.testing.timeline import timeline
from warplens.timeline import tree
from warplens.viewer.answers.answers import Answers, View
from warplens.viewer.answers.loaded_report import Opened

pytestmark = pytest.mark.slow

PICTURE = """
    main     |[step                                    ]
    main:api |(cudaLaunchKernel#1)
    gpu0.7   |   (gemm#1                    )
"""


def answers(path: Path, *launches: DrawnLaunch) -> Answers:
    timeline(path, PICTURE, origin=0, tables=launch_tables(launches, origin=0))
    return Answers(View("view", [Opened(0, Report.open(path))]))


def gemm(**options: Any) -> DrawnLaunch:
    return DrawnLaunch("gemm", 3_000, 30_000, list(pipeline(3_100, 29_900, **options)), api=0)


def walk(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from walk(node["children"])


def named(found: Answers, name: str) -> dict[str, Any]:
    return next(node for node in walk(found.tracks(0)) if node["name"] == name)


def test_regions_are_folded_below_the_stream_of_their_kernel(tmp_path: Path) -> None:
    found = answers(tmp_path / "r.warplens", gemm(sms=2))
    stream = named(found, "Stream 7")
    inside = next(node for node in stream["children"] if node["name"] == "Inside gemm")
    assert not inside["open"]
    assert inside["track"]["layer"] == "intrakernel_launches"
    assert [node["name"] for node in inside["children"]] == ["SM 0", "SM 1"]
    first = inside["children"][0]
    assert first["track"]["layer"] == "intrakernel_units"
    assert [(node["name"], node["track"]["layer"], node["track"]["lanes"]) for node in first["children"]] == [
        ("Warp 0", "intrakernel_events", 2),
        ("Warp 1", "intrakernel_events", 2),
    ]
    assert [node["name"] for node in first["children"][0]["children"]] == ["Marks"]


def test_without_a_kernel_they_are_below_the_process_or_gpu(tmp_path: Path) -> None:
    gpu = DrawnLaunch("a", 0, 1000, list(pipeline(0, 1000)), kernel=None)
    host = DrawnLaunch("b", 0, 1000, list(pipeline(0, 1000)), kernel=None, device=None)
    found = answers(tmp_path / "r.warplens", gpu, host)
    assert "Inside a" in [node["name"] for node in named(found, "GPU 0")["children"]]
    assert "Inside b" in [node["name"] for node in named(found, "python")["children"]]


def test_many_are_folded_and_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = answers(tmp_path / "r.warplens", gemm(sms=40, blocks=40))
    inside = named(found, "Inside gemm")
    assert [node["name"] for node in inside["children"]][-1] == "32 more SMs"
    assert len(inside["children"]) == 9
    assert not any(node["open"] for node in inside["children"])
    monkeypatch.setattr(tree, "_MOST_INSIDE", 60)
    again = Answers(View("view", [Opened(0, Report.open(tmp_path / "r.warplens"))]))
    cut = named(again, "Inside gemm")
    assert cut["detail"] == "not all of its rows are shown"
    assert (
        sum(
            "track" in node and node["track"]["layer"] != "intrakernel_launches"
            for node in walk(cut["children"])
        )
        == 60
    )


def test_many_kernels_of_a_stream_are_folded(tmp_path: Path) -> None:
    found = answers(
        tmp_path / "r.warplens",
        *(DrawnLaunch(f"k{n}", 3000, 4000, list(pipeline(3000, 4000))) for n in range(9)),
    )
    names = [node["name"] for node in named(found, "Stream 7")["children"]]
    assert [name for name in names if "Inside" in name or "more" in name] == [
        *(f"Inside k{n}" for n in range(6)),
        "3 more kernels",
    ]


def test_a_region_says_where_it_ran_and_what_is_around_it(tmp_path: Path) -> None:
    found = answers(tmp_path / "r.warplens", gemm(sms=2, blocks=4))
    told = found.event(0, "intrakernel_events", 0, 11)
    fields = {field["name"]: field["value"] for field in told["fields"]}
    assert (told["title"], fields["cta"], fields["warp"], fields["sm"], fields["launch"]) == (
        "compute",
        0,
        1,
        0,
        "gemm",
    )
    assert fields["uncertainty"] == 800
    assert {link["relation"]: link["table"] for link in told["links"]} == {
        "inside": "intrakernel_launches",
        "kernel": "kernels",
    }
    assert [(one["table"], one["name"]) for one in told["parents"]] == [
        ("intrakernel_launches", "gemm"),
        ("intrakernel_events", "tile"),
    ]
    tile = found.event(0, "intrakernel_events", 0, 0)
    assert {field["name"]: field["value"] for field in tile["fields"]}["payload"] == 0
    mark = found.event(0, "intrakernel_marks", 0, 8)
    assert (mark["title"], [one["name"] for one in mark["parents"]]) == ("done", ["gemm", "tile"])
    block = found.event(0, "intrakernel_units", 0, 0)
    assert (block["title"], block["parents"][0]["table"]) == ("block 0", "intrakernel_launches")


def test_kernel_call_and_launch_lead_to_one_another(tmp_path: Path) -> None:
    found = answers(tmp_path / "r.warplens", gemm())
    kernel, launch = (found.event(0, table, 0, 0) for table in ("kernels", "intrakernel_launches"))
    assert ("inside", "intrakernel_launches") in [
        (link["relation"], link["table"]) for link in kernel["links"]
    ]
    relations = [(link["relation"], link["table"]) for link in launch["links"]]
    assert relations == [("launch", "cuda_api"), ("nvtx", "nvtx_ranges"), ("kernel", "kernels")]


def test_search_selection_and_alike_know_regions(tmp_path: Path) -> None:
    found = answers(tmp_path / "r.warplens", gemm(sms=2, blocks=2, tiles=3))
    assert found.search(0, "compu", False, 0, 10)["names"] == [
        {"layer": "intrakernel_events", "text": "compute", "count": 6}
    ]
    tracks = [
        node["track"]["track"] for node in walk(named(found, "Inside gemm")["children"]) if "track" in node
    ]
    names = {
        (one["layer"], one["name"]): one["count"] for one in found.selected(0, 0, 50_000, tracks)["names"]
    }
    assert names["intrakernel_events", "load"] == 6
    assert names["intrakernel_marks", "done"] == 4
    assert found.alike(0, "intrakernel_events", 0, 1)["count"] == 6
