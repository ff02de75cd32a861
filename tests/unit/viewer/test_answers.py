"""What the page is told agrees with the report's tables."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.page.viewing import PICTURE
from warplens.errors import MissingData, QueryError, UsageError
from warplens.flows.viewing import view_of
from warplens.report import open as open_report
from warplens.report.report import Report
from warplens.testing.timeline import timeline
from warplens.viewer.answers.answers import Answers
from warplens.viewer.answers.loaded_report import FIRST_COUNTER

Node = dict[str, Any]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    path = tmp_path_factory.mktemp("answers") / "run.warplens"
    timeline(path, PICTURE)
    with open_report(path) as found:
        yield found


@pytest.fixture(scope="module")
def answers(report: Report) -> Iterator[Answers]:
    found = Answers(view_of([report]))
    yield found
    found.close()


def nodes(tree: list[Node]) -> Iterator[Node]:
    for node in tree:
        yield node
        yield from nodes(node["children"])


def tracks(answers: Answers) -> dict[str, Node]:
    return {node["id"]: node for node in nodes(answers.tracks(0)) if "track" in node}


def rects(answer: bytes) -> dict[str, Any]:
    """Read a viewport as the page does."""
    magic, version, lanes, count, names, text, begin, end, grain = struct.unpack_from("<4s5I3d", answer)
    assert (magic, version) == (b"WLV1", 1)
    at = 48
    found: dict[str, Any] = {"begin": begin, "end": end, "grain": grain}
    found["lanes"] = np.frombuffer(answer, "<u4", lanes * 4, at).reshape(-1, 4)
    at += lanes * 16
    for name, kind in (
        ("start", "<f8"),
        ("duration", "<f8"),
        ("name", "<u4"),
        ("row", "<u4"),
        ("slices", "<u4"),
        ("busy", "<f4"),
        ("link", "<u4"),
    ):
        found[name] = np.frombuffer(answer, kind, count, at)
        at += count * found[name].itemsize
    found["color"] = np.frombuffer(answer, "<u4", names, at)
    at += names * 4
    offsets = np.frombuffer(answer, "<u4", names + 1, at)
    at += 4 * (names + 1)
    assert len(answer) == at + text == at + offsets[-1]
    found["names"] = [answer[at + first : at + last].decode() for first, last in itertools.pairwise(offsets)]
    return found


def plots(answer: bytes) -> dict[int, np.ndarray[Any, Any]]:
    magic, version, series, points, *_ = struct.unpack_from("<4s3I2d", answer)
    assert (magic, version) == (b"WLP1", 1)
    heads = np.frombuffer(answer, "<u4", 4 * series, 32).reshape(-1, 4)
    columns = np.frombuffer(answer, "<f8", 4 * points, 32 + 16 * series).reshape(4, -1)
    assert len(answer) == 32 + 16 * series + 32 * points
    return {track: columns[:, first : first + count] for track, first, count, _ in heads.tolist()}


def test_meta_says_what_there_is(answers: Answers, report: Report) -> None:
    meta = answers.meta()
    (one,) = meta["reports"]
    assert (meta["version"], meta["title"], one["name"], one["hosts"]) == (1, "run", "run", ["host"])
    assert (one["begin"], one["end"], one["live"]) == (0, report.end - report.origin, False)
    assert {"kernels", "memory", "metrics", "nvtx", "samples"} <= set(meta["features"])


def test_the_rows_stand_below_their_process_thread_and_stream(answers: Answers) -> None:
    found = tracks(answers)
    layers = {id_.partition("host:0/")[2]: node["track"]["layer"] for id_, node in found.items()}
    assert layers["process:0/thread:0"] == "thread_states"
    assert layers["process:0/thread:0/nvtx"] == "nvtx_ranges"
    assert layers["process:0/thread:0/api"] == "cuda_api"
    assert layers["process:1/nvtx"] == "nvtx_ranges"
    assert layers["gpu:GPU-0/context:0:1/stream:7"] == "kernels"
    assert layers["gpu:GPU-0/context:0:1/stream:7/nvtx"] == "nvtx_gpu_projection"
    assert layers["gpu:GPU-0/context:0:1/stream:8"] == "kernels"
    assert layers["gpu:GPU-0/memory/copies:0:Host-to-Device"] == "memory_rows"
    assert found["host:0/gpu:GPU-0/memory/copies:0:Host-to-Device"]["name"] == "HtoD"
    counters = {node["name"]: node["track"]["track"] for node in found.values() if node["kind"] == "counter"}
    assert {"mem", "SM Active", "Memory"} <= set(counters)
    assert min(counters.values()) == FIRST_COUNTER


def test_track_numbers_are_unique_and_every_row_has_its_process(answers: Answers) -> None:
    found = [node for node in nodes(answers.tracks(0)) if "track" in node]
    numbers = [node["track"]["track"] for node in found]
    assert len(set(numbers)) == len(numbers)
    assert all("process" in node for node in found if node["kind"] != "counter")


def test_a_viewport_has_the_rows_of_its_table(answers: Answers, report: Report) -> None:
    track = tracks(answers)["host:0/process:0/thread:0/nvtx"]["track"]
    found = rects(answers.viewport(0, 0.0, 100_000.0, 1000, [track["track"]], 1000))
    rows = report.sql(
        'SELECT id, start, "end", message FROM nvtx_ranges WHERE process = 0 AND thread = 0 AND task IS NULL ORDER BY depth, start'
    ).to_pylist()
    assert (found["start"] + report.origin).tolist() == [row["start"] for row in rows]
    assert found["duration"].tolist() == [row["end"] - row["start"] for row in rows]
    assert [found["names"][name] for name in found["name"]] == [row["message"] for row in rows]
    assert found["row"].tolist() == [row["id"] & 0xFFFFFFFF for row in rows]
    assert found["lanes"].tolist() == [[track["track"], 0, 0, 2], [track["track"], 1, 2, 2]]
    assert found["slices"].tolist() == [1] * 4


def test_events_of_one_launch_have_one_link(answers: Answers) -> None:
    every = [node["track"]["track"] for node in tracks(answers).values()]
    found = rects(answers.viewport(0, 0, 100_000, 1000, every, 5000))
    links: dict[str, set[int]] = {}
    for name, link in zip(found["name"].tolist(), found["link"].tolist(), strict=True):
        links.setdefault(found["names"][name], set()).add(link)
    assert links["cudaLaunchKernel"] == links["gemm"] != {0xFFFFFFFF}
    assert links["step"] == {0xFFFFFFFF}


def test_all_of_a_counter_is_in_its_plot(answers: Answers, report: Report) -> None:
    track = next(node["track"] for node in tracks(answers).values() if node["name"] == "mem")
    (found,) = plots(answers.plots(0, 0, 100_000, 100, [track["track"], 3])).values()
    assert found[3].tolist()[:3] == [0, 3, 1.5]
    assert np.isnan(found[3][3])
    assert (track["low"], track["high"]) == (0, 3)
    assert found[0].tolist() == [
        row - report.origin for row in report.table("nvtx_counter_samples", ["start"]).column(0).to_pylist()
    ]


def test_a_kernel_is_told_with_its_launch_its_range_and_all_around(answers: Answers, report: Report) -> None:
    row = report.sql("SELECT min(id) AS id FROM kernels").to_pylist()[0]["id"]
    found = answers.event(0, "kernels", row >> 32, row & 0xFFFFFFFF)
    assert found["title"] == found["event"]["name"] == "gemm"
    relations = {(link["relation"], link["name"]) for link in found["links"]}
    assert {("launch", "cudaLaunchKernel"), ("kernel", "gemm"), ("nvtx", "step")} <= relations
    assert [parent["name"] for parent in found["parents"]] == ["step"]
    fields = {field["name"]: field for field in found["fields"]}
    assert fields["start"]["value"] == found["event"]["start"]
    assert fields["duration"] == {"name": "duration", "value": found["event"]["duration"], "unit": "ns"}


def test_a_call_outside_of_all_ranges_is_told(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main:api |(cudaFree )")
    with open_report(tmp_path / "run.warplens") as report:
        found = Answers(view_of([report])).event(0, "cuda_api", 0, 0)
    assert (found["title"], found["links"], found["parents"]) == ("cudaFree", [], [])
    assert {"name": "api", "value": "runtime"} in found["fields"]


def test_a_range_is_told_with_those_around_it_and_its_place_on_the_gpu(
    answers: Answers, report: Report
) -> None:
    load = report.sql("SELECT min(id) AS id FROM nvtx_ranges WHERE message = 'load'").to_pylist()[0]["id"]
    assert [
        one["name"] for one in answers.event(0, "nvtx_ranges", load >> 32, load & 0xFFFFFFFF)["parents"]
    ] == ["step"]
    step = report.sql("SELECT min(id) AS id FROM nvtx_ranges WHERE message = 'step'").to_pylist()[0]["id"]
    links = answers.event(0, "nvtx_ranges", step >> 32, step & 0xFFFFFFFF)["links"]
    assert "gpu" in {link["relation"] for link in links}
    on_gpu = next(link for link in links if link["relation"] == "gpu")
    back = answers.event(0, on_gpu["table"], on_gpu["process"], on_gpu["row"])
    assert ("nvtx", "step") in {(link["relation"], link["name"]) for link in back["links"]}


@pytest.mark.slow
def test_every_event_of_every_row_has_details(answers: Answers) -> None:
    for node in tracks(answers).values():
        track = node["track"]
        if node["kind"] == "counter":
            continue
        found = rects(answers.viewport(0, 0, 100_000, 1000, [track["track"]], 5000))
        for row, start in zip(found["row"].tolist(), found["start"].tolist(), strict=True):
            told = answers.event(0, track["layer"], node["process"], row)
            if track["layer"] != "nvtx_gpu_projection":  # a range may be on several streams
                assert (told["event"]["track"], told["event"]["start"]) == (track["track"], start)
            alike = answers.alike(0, track["layer"], node["process"], row)
            assert alike["count"] == sum(alike["counts"]) >= 1
            assert alike["longest"]


def test_a_stack_is_told_from_the_inside_out(answers: Answers) -> None:
    found = answers.event(0, "samples", 0, 0)
    assert [frame["function"] for frame in found["stack"]] == ["copy", "run", "main"]
    assert found["title"] == found["event"]["name"] == "copy"


def test_wall_time_has_what_threads_waited_for(tmp_path: Path) -> None:
    waits = {"main;wait": {"on_cpu": False}, "run;get": {"on_cpu": False}}
    picture = "main:python |(main;wait  )(main;work )\nidle:python |(run;get              )"
    timeline(tmp_path / "r.warplens", picture, main="main", cpu=waits)
    with open_report(tmp_path / "r.warplens") as opened:
        answers = Answers(view_of([opened]))
        ran, wall = (answers.flame(0, kind)["root"]["children"] for kind in ("samples", "wall"))
    assert [[child["name"] for child in node["children"]] for node in ran] == [["work"]]
    assert [{child["name"] for child in node["children"]} for node in wall] == [{"wait", "work"}]


def test_a_task_is_called_by_its_name_and_what_it_does(tmp_path: Path) -> None:
    timeline(tmp_path / "tasks.warplens", "main:task |(A:running<*A;work )(A<*A;get )(B<*B;get )")
    with open_report(tmp_path / "tasks.warplens") as opened:
        answers = Answers(view_of([opened]))
        found, flame = answers.event(0, "task_samples", 0, 1), answers.flame(0, "tasks")
        assert "tasks" in answers.meta()["features"]
    assert [
        (node["name"], [child["name"] for child in node["children"]]) for node in flame["root"]["children"]
    ] == [
        ("task A", ["work", "get"]),
        ("task B", ["get"]),
    ]
    assert found["title"] == "A: (get)"
    assert [field["value"] for field in found["fields"] if field["name"] in ("task", "state")] == [
        "A",
        "awaiting",
    ]
    assert [frame["function"] for frame in found["stack"]] == ["get", "task A"]


def test_alike_counts_all_of_the_name(answers: Answers, report: Report) -> None:
    row = report.sql("SELECT min(id) AS id FROM nvtx_ranges WHERE message = 'step'").to_pylist()[0]["id"]
    found = answers.alike(0, "nvtx_ranges", row >> 32, row & 0xFFFFFFFF)
    assert (found["name"], found["count"], found["minimum"], found["maximum"]) == ("step", 2, 28_000, 28_000)
    assert found["total"] == 56_000


def test_a_search_finds_names_and_their_events_in_both_directions(answers: Answers) -> None:
    found = answers.search(0, "LOA", False, 20_000, 10)
    assert (found["total"], [(one["layer"], one["text"]) for one in found["names"]]) == (
        2,
        [("nvtx_ranges", "load")],
    )
    starts = [one["start"] for one in found["events"]]
    assert starts == sorted(starts)
    assert starts[0] < 20_000 < starts[1]
    assert [answers.search(0, "load", False, time, 1)["before"] for time in (0, 20_000, 10**9)] == [0, 1, 2]
    assert answers.search(0, "^ge.m$", True, 0, 10)["total"] == 2
    assert answers.search(0, "ge.m", False, 0, 10)["total"] == 0
    assert answers.search(0, "", False, 0, 10)["total"] == 0
    with pytest.raises(UsageError, match="regular expression"):
        answers.search(0, "(", True, 0, 10)


def test_a_selection_is_summed_by_name(answers: Answers) -> None:
    track = tracks(answers)["host:0/process:0/thread:0/nvtx"]["track"]["track"]
    found = answers.selected(0, 0, 14_000, [track])
    assert found["tracks"] == [{"track": track, "busy": 1.0, "events": 2}]
    assert {one["name"]: (one["count"], one["total"]) for one in found["names"]} == {
        "step": (1, 14_000),
        "load": (1, 7_000),
    }


@pytest.mark.parametrize("kind", ["samples", "nvtx", "kernels"])
def test_a_flame_graph_adds_up(answers: Answers, kind: str) -> None:
    def check(node: Node) -> None:
        assert node["value"] >= node["self"] + sum(child["value"] for child in node["children"]) or node[
            "name"
        ] in (
            "samples",
            "nvtx_ranges",
        )
        for child in node["children"]:
            check(child)

    root = answers.flame(0, kind)["root"]
    assert root["value"] == sum(child["value"] for child in root["children"]) > 0
    check(root)


def test_steps_come_with_their_parts(answers: Answers) -> None:
    found = answers.steps(0)
    assert found["name"] == "step"
    assert [(one["number"], one["start"], one["end"]) for one in found["steps"]] == [
        (0, 0, 28_000),
        (1, 28_000, 56_000),
    ]
    assert all(sum(one["parts"].values()) == 28_000 for one in found["steps"])


def test_a_report_without_steps_says_so_in_the_answer(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main |{task }")
    with open_report(tmp_path / "run.warplens") as report:
        found = Answers(view_of([report])).steps(0)
    assert found["steps"] == []
    assert found["note"].startswith("The report does not contain training steps: no NVTX range is called ")
    assert ":step=" not in found["note"]  # which is of the command line


def test_steps_takes_the_name_of_the_range(answers: Answers) -> None:
    found = answers.steps(0, "load")
    assert (found["name"], [(one["number"], one["start"]) for one in found["steps"]]) == (
        "load",
        [(0, 2_000), (1, 30_000)],
    )
    assert "'nothing'" in answers.steps(0, "nothing")["note"]


def test_at_finds_the_next_event_of_a_table(answers: Answers) -> None:
    found = answers.at(0, "kernels", 3_500)
    assert found is not None
    assert found["start"] == 20_000
    assert answers.at(0, "kernels", 1e9) is None
    assert answers.at(0, "nothing", 0) is None


@pytest.mark.slow
def test_every_stat_that_is_listed_as_there_has_an_answer_or_says_why_not(answers: Answers) -> None:
    listed = answers.stat_list(0)
    assert next(one["name"] for one in listed) == "nvtx_sum"
    for one in listed:
        try:
            table = answers.stat(0, one["name"])
        except MissingData:
            continue
        assert one["available"], f"{one['name']} has rows, but is listed as not there"
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_rows_of_a_trace_lead_to_their_events(answers: Answers) -> None:
    table = answers.stat(0, "cuda_gpu_trace")
    place = [column["name"] for column in table["columns"]].index("Start")
    assert table["columns"][place] == {"name": "Start", "unit": "ns", "kind": "time"}
    assert [link["start"] for link in table["links"]] == [row[place] for row in table["rows"]]


@pytest.mark.slow
def test_findings_lead_to_their_evidence(answers: Answers) -> None:
    found = answers.findings(0)
    assert {"findings", "notJudged", "silent"} == set(found)
    placed = [row["event"] for one in found["findings"] for row in one["evidence"]]
    assert any(placed)
    assert all(one["shared"] <= one["estimate"] for one in found["findings"] if one["shared"])
    assert all("shared" in one for one in found["findings"])


def test_a_question_of_a_report_that_is_not_there_is_told(answers: Answers) -> None:
    for number in (-1, 1):
        with pytest.raises(MissingData, match="no report"):
            answers.tracks(number)
    with pytest.raises(QueryError):
        answers.sql(0, "DROP VIEW kernels")


def test_one_report_has_no_difference(answers: Answers) -> None:
    assert answers.difference() is None


@pytest.mark.slow
def test_two_reports_are_compared_and_laid_on_each_other(report: Report, tmp_path: Path) -> None:
    timeline(tmp_path / "after.warplens", PICTURE, tick_ns=2000)
    with open_report(tmp_path / "after.warplens") as after:
        both = Answers(view_of([report, after]))
        assert [one["name"] for one in both.meta()["reports"]] == ["run", "after"]
        found = both.difference()
    assert found is not None
    assert {"label": "step 1", "a": 28_000, "b": 56_000} in found["anchors"]
    steps = next(table for table in found["tables"] if table["title"] == "step")
    assert (
        dict(zip([column["name"] for column in steps["columns"]], steps["rows"][0], strict=True))["change"]
        == 100
    )
