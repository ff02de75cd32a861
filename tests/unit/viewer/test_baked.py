"""What a page without a server holds: the server's answers, at zooms between which every view finds one that does for it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.page.viewed_training import training
from tests.unit.viewer.test_single_page import built
from warplens.errors import UsageError
from warplens.flows import view_page
from warplens.flows.viewing import view_of
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline
from warplens.viewer import bundle
from warplens.viewer.answers.answers import Answers
from warplens.viewer.answers.details import read_ahead
from warplens.viewer.page import baked as module
from warplens.viewer.page.baked import baked

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Report]:
    with open_report(training(tmp_path_factory.mktemp("baked") / "run.warplens", steps=2)) as opened:
        yield opened


@pytest.fixture(scope="module")
def answers(report: Report) -> Answers:
    return Answers(view_of([report]))


@pytest.fixture(scope="module")
def held(answers: Answers) -> dict[str, bytes]:
    return dict(baked(answers))


def rects(answer: bytes) -> dict[str, Any]:
    """Columns of a viewport answer, by its format's page."""
    magic, version, lanes, count, names, _, begin, end, grain = struct.unpack_from("<4s5I3d", answer)
    assert (magic, version) == (b"WLV1", 1)
    runs = np.frombuffer(answer, "<u4", lanes * 4, 48).reshape(-1, 4)
    at = 48 + 16 * lanes
    start, duration = (np.frombuffer(answer, "<f8", count, at + 8 * count * place) for place in range(2))
    slices = np.frombuffer(answer, "<u4", count, at + 16 * count + 8 * count)
    return {
        "runs": runs,
        "start": start,
        "duration": duration,
        "slices": slices,
        "names": names,
        "span": (begin, end),
        "grain": grain,
    }


def test_the_finest_level_has_every_event(held: dict[str, bytes], answers: Answers) -> None:
    grains = json.loads(held["levels/0"])["rects"]
    finest = rects(held[f"viewport/0/{len(grains) - 1}"])
    events = {lane.number: lane.events for lane in answers.view.reports[0].every_lane.all}
    assert finest["slices"].tolist() == [1] * sum(events.values())
    for track, number in events.items():
        assert finest["runs"][finest["runs"][:, 0] == track][:, 3].sum() == number


def test_levels_get_finer_and_hold_all_events(held: dict[str, bytes]) -> None:
    grains = json.loads(held["levels/0"])["rects"]
    assert grains == sorted(grains, reverse=True)
    levels = [rects(held[f"viewport/0/{place}"]) for place in range(len(grains))]
    assert [level["grain"] for level in levels] == grains
    assert len({int(level["slices"].sum()) for level in levels}) == 1
    assert [len(level["start"]) for level in levels] == sorted(len(level["start"]) for level in levels)


def test_narrow_rectangles_are_joined_at_the_coarsest_zoom(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_COARSEST", 1)
    monkeypatch.setattr(module, "_DETAILED", 0)
    held = dict(baked(answers))
    grains = json.loads(held["levels/0"])["rects"]
    counts = [len(rects(held[f"viewport/0/{place}"])["start"]) for place in range(len(grains))]
    assert len(counts) > 1
    assert counts[0] < counts[-1] / 2
    assert json.loads(held["events/0"]) == {}


def test_panels_find_what_the_server_would_say(held: dict[str, bytes], answers: Answers) -> None:
    assert json.loads(held["meta"]) == answers.meta()
    assert json.loads(held["tracks/0"]) == answers.tracks(0)
    assert json.loads(held["findings/0"]) == answers.findings(0)
    assert json.loads(held["stat/0/nvtx_sum"]) == answers.stat(0, "nvtx_sum")
    available = {one["name"] for one in answers.stat_list(0) if one["available"]}
    assert {key.rpartition("/")[2] for key in held if key.startswith("stat/")} == available
    assert "does not contain" in json.loads(held["flame/0/python"])["error"]
    assert json.loads(held["stat/0/nvtx_pushpop_trace"])["error"].endswith("stats -r nvtx_pushpop_trace")
    assert "difference" not in held


def test_events_come_with_details_and_names_with_sums(
    held: dict[str, bytes], answers: Answers, report: Report
) -> None:
    events = json.loads(held["events/0"])
    for key, details in events.items():
        event = details["event"]
        assert key == f"{event['table']}/{event['process']}/{event['row']}"
    (step,) = [
        one for one in events.values() if one["event"]["table"] == "nvtx_ranges" and one["event"]["row"] == 0
    ]
    assert step == answers.event(0, "nvtx_ranges", 0, 0)
    alike = json.loads(held["alike/0"])
    assert {"step", "adam"} <= {one["name"] for one in alike.values()}
    server = Answers(view_of([report]))  # reads them name by name
    for one in alike.values():
        event = one["longest"][0]
        assert one == server.alike(0, event["table"], event["process"], event["row"])


def test_rows_of_events_are_read_with_one_question_for_each_table(
    report: Report, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [("nvtx_ranges", 0, 0), ("nvtx_ranges", 0, 1)]
    before = [answers.event(0, *event) for event in events]
    read_ahead(answers.view.reports[0], events)
    asked: list[str] = []
    sql = Report.sql

    def heard(self: Report, text: str, *more: Any, **how: Any) -> pa.Table:
        asked.append(text)
        return sql(self, text, *more, **how)

    monkeypatch.setattr(Report, "sql", heard)
    assert [answers.event(0, *event) for event in events] == before
    assert not [text for text in asked if text.startswith("SELECT * FROM nvtx_ranges WHERE id = $id")]


def test_two_reports_come_with_their_difference(report: Report, tmp_path: Path) -> None:
    with open_report(training(tmp_path / "slower.warplens", steps=2, slower=3)) as slower:
        held = dict(baked(Answers(view_of([report, slower]))))
    assert json.loads(held["difference"])["anchors"]
    assert {"meta", "tracks/0", "tracks/1", "levels/1"} <= held.keys()


def test_too_many_events_are_refused_before_anything_is_computed(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_EVENTS", 10)
    with pytest.raises(UsageError, match=r"events.*warplens view.*-t html"):
        next(baked(answers))


def test_a_page_that_is_too_large_is_refused_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline(tmp_path / "run.warplens", "main |[step]")
    monkeypatch.setattr(bundle, "files", lambda single: built())
    monkeypatch.setattr(view_page, "MOST_BYTES", 1000)
    with (
        pytest.raises(UsageError, match=r"MB.*warplens view"),
        open_report(tmp_path / "run.warplens") as report,
    ):
        view_page.write([report], tmp_path / "page.html")
    assert [path.name for path in tmp_path.iterdir()] == ["run.warplens"]


def test_the_page_is_written_whole(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "files", lambda single: built())
    said: list[str] = []
    view_page.write([report], tmp_path / "page.html", lambda what, share: said.append(what))
    assert b'data-answer="levels/0"' in (tmp_path / "page.html").read_bytes()
    assert "collecting details" in said
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
