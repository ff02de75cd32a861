"""Files that are no traces, cut off, broken or made to harm: a clear error that names the file, or what can be had and what is missing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.reports.kineto_trace import Event, call, event, kernel, op, write, write_text
from warplens.errors import NotAReport, ReportError, WarplensError
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report

TEN = [op(f"aten::op{number}", number * 10, 5, External_id=number) for number in range(10)]


def imported(path: Path) -> Report:
    report = path.with_name("out.warplens")
    import_file(path, report)
    return open_report(report)


def names(report: Report) -> list[str]:
    return [str(name) for name in report.table("ops", ["name"]).column("name").to_pylist()]


def said(report: Report) -> dict[str, tuple[str, int | None]]:
    return {row["code"]: (row["message"], row["count"]) for row in report.diagnostics.to_pylist()}


def raw(events: list[Event] | str, folder: Path, name: str = "run.json") -> Path:
    return write(folder / name, events)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 4096,
        b"PK\3\4 a zip",
        b"hello",
        b"[1, 2, 3]",
        b'{"name": "package", "version": 1}',
        b"\x1f\x8bnot gzip",
        b'"traceEvents"',
    ],
)
def test_a_file_that_is_no_trace_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(NotAReport, match=r"x\.json"):
        import_file(path, tmp_path / "x.warplens")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    "content",
    [
        '{"schemaVersion": 1, "deviceProperties": []}',
        '{"schemaVersion": 1, "distributedInfo": {}, "traceEvents": 5}',
    ],
)
def test_json_without_events_is_refused(content: str, tmp_path: Path) -> None:
    with pytest.raises(NotAReport, match=r"x\.json is JSON, but not a trace: it has no `traceEvents`"):
        import_file(write_text(tmp_path / "x.json", content), tmp_path / "x.warplens")


@pytest.mark.slow
def test_a_cut_off_trace_keeps_its_whole_events(tmp_path: Path) -> None:
    whole = raw(TEN, tmp_path).read_bytes()
    text = whole.decode()
    for size in range(len(whole) // 10, len(whole), len(whole) // 23):
        path = tmp_path / "cut.json"
        path.write_bytes(whole[:size])
        there = text[:size].count("\n  },") + text[:size].count("\n  }\n]")
        if not there:
            with pytest.raises(
                ReportError, match=r"cut\.json ends at byte \d+ of its text, before the first event"
            ):
                import_file(path, tmp_path / "out.warplens")
            continue
        report = imported(path)
        assert abs(len(names(report)) - there) <= 1
        message, _ = said(report)["truncated"]
        assert "cut.json ends at byte" in message
        report.close()
        for entry in (tmp_path / "out.warplens").rglob("*"):
            if entry.is_file():
                entry.unlink()
        (tmp_path / "out.warplens").rename(tmp_path / f"old{size}")


@pytest.mark.slow
def test_packing_that_is_cut_or_broken(tmp_path: Path) -> None:
    events = [
        op(f"aten::op{number}", number, 1, External_id=number * 7919 % 104_729) for number in range(20_000)
    ]
    whole = raw(events, tmp_path, "run.json.gz").read_bytes()
    for name, data in {
        "cut": whole[: len(whole) // 2],
        "bad": whole[: len(whole) // 2] + b"\xff" * 999 + whole[len(whole) // 2 + 999 :],
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run.json.gz").write_bytes(data)
        report = imported(folder / "run.json.gz")
        assert 100 < len(names(report)) < len(events)
        codes = said(report)
        assert "packing-broken" in codes
        assert "copy it again" in codes["packing-broken"][0]


def test_several_packed_members_are_one_text(tmp_path: Path) -> None:
    data = raw(TEN, tmp_path).read_bytes()
    path = tmp_path / "two.json.gz"
    path.write_bytes(gzip.compress(data[:700]) + gzip.compress(data[700:]) + b"\0" * 512)
    report = imported(path)
    assert len(names(report)) == 10
    assert said(report) == {}


def test_an_array_need_not_be_closed(tmp_path: Path) -> None:
    path = write_text(tmp_path / "run.json", json.dumps(TEN)[:-1] + ",\n")
    report = imported(path)
    assert len(names(report)) == 10
    assert set(said(report)) == {"open-array"}


@pytest.mark.slow
@pytest.mark.parametrize("damage", ['"na"me"', '"na\n", me"', "{,", '"a" "b"', "'text'", "\\"])
def test_the_events_around_a_broken_one_are_kept(damage: str, tmp_path: Path) -> None:
    text = json.dumps(TEN, indent=2).replace('"aten::op4"', damage)
    path = write_text(tmp_path / "run.json", '{"schemaVersion": 1, "traceEvents": ' + text + "}")
    report = imported(path)
    assert names(report) == [f"aten::op{number}" for number in range(10) if number != 4]
    message, count = said(report)["broken-events"]
    assert count == 1
    at = int(message.split("at byte ")[1].split()[0])
    start = path.read_text().index(damage)
    assert start <= at <= start + 300  # brackets that are not closed show later


def test_text_behind_a_trace_is_said(tmp_path: Path) -> None:
    path = raw(TEN, tmp_path)
    path.write_bytes(path.read_bytes() + b"\nSegmentation fault\n")
    report = imported(path)
    assert len(names(report)) == 10
    assert "broken-events" in said(report)


def test_careless_values(tmp_path: Path) -> None:
    text = """[
      {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2, "args": {"External id": NaN, "x": [Infinity]}},
      {"args": {"External id": 0x1f, "x": -inf}, "dur": "3.25", "ts": "4.125", "tid": "1", "pid": 1, "name": null,
       "cat": "cpu_op", "ph": "X"},
      {"ph": "X", "cat": "cpu_op", "name": 5, "pid": 1, "tid": 1, "ts": 1e1, "dur": 1E-3, "args": null},
      {"ph": "X", "cat": "cpu_op", "name": "C:\\Users\\new", "pid": 1.0, "tid": 1, "ts": 20, "dur": 0, "args": {"External id": 12.0}},
      null, 7,
      {}
    ]"""
    report = imported(write_text(tmp_path / "run.json", text))
    found = sorted(
        report.sql('SELECT "start", "end", name, external FROM ops').to_pylist(), key=lambda row: row["start"]
    )
    assert [tuple(row.values()) for row in found] == [
        (1500, 3500, "a", None),
        (4125, 7375, "", None),
        (10_000, 10_001, "5", None),
        (20_000, 20_000, "C:\\Users\new", 12),
    ]


def test_names_of_all_kinds(tmp_path: Path) -> None:
    given = [
        (r"\u00e4\ud83d\ude00\n\t\"\\\/\b\f\r", 'ä😀\n\t"\\/\b\f\r'),
        (r"\ud800 alone \udc00", "� alone �"),
        ("über 漢字", "über 漢字"),
        (r"\u12", "\\u12"),
        ("", ""),
        ("x" * 100_000, "x" * 100_000),
    ]
    text = ",".join(
        f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{number},"dur":1}}'
        for number, (name, _) in enumerate(given)
    )
    data = (
        f"[{text},".encode()
        + b'{"ph":"X","cat":"cpu_op","name":"bad \xff\xfe\xed\xa0\x80 bytes","pid":1,"tid":1,"ts":99,"dur":1}]'
    )
    assert names(imported(write_text(tmp_path / "run.json", data))) == [
        *(name for _, name in given),
        "bad \ufffd\ufffd\ufffd\ufffd\ufffd bytes",
    ]


def test_numbers_that_do_not_fit(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 1, 1, External_id=1 << 80, Sequence_number=-5),
        {**op("aten::far", 0, 1), "ts": 1e300},
        {**op("aten::long", 2, 1), "dur": 1e300},
        kernel(
            "gemm",
            3,
            1,
            -7,
            device=1 << 40,
            stream=-3,
            grid=[1 << 40, -1, "a"],
            **{"registers per thread": 1 << 33},
        ),
        call("cudaLaunchKernel", 4, 1, (1 << 63) + 5),
    ]
    report = imported(raw(events, tmp_path))
    assert report.sql("SELECT name, external FROM ops").to_pylist() == [
        {"name": "aten::mm", "external": None},
        {"name": "aten::long", "external": None},
    ]
    (row,) = report.table("kernels").to_pylist()
    assert (row["api"], row["correlation"], row["registers"], row["grid_x"]) == (None, None, 0, 0)
    assert said(report)["no-time"][1] == 1


@pytest.mark.slow
def test_deep_and_long_things(tmp_path: Path) -> None:
    deep = "[" * 200_000 + "]" * 200_000
    events = json.dumps(TEN)[1:-1]
    long = (
        '{"ph": "X", "cat": "cpu_op", "name": "long", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"x": "'
        + "y" * (9 << 20)
        + '"}}'
    )
    args = (
        '{"ph": "X", "cat": "cpu_op", "name": "deep", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"x": '
        + deep
        + "}}"
    )
    text = (
        f'{{"metadata": {deep}, "otherData": "{"z" * (5 << 20)}", '
        f'"traceEvents": [{args}, {long}, {events}], "deviceProperties": {deep}}}'
    )
    report = imported(write_text(tmp_path / "run.json", text))
    assert len(names(report)) == 11
    message, count = said(report)["broken-events"]
    assert (count, "1 of them for their length" in message) == (1, True)


def test_many_arguments_are_kept_within_a_limit(tmp_path: Path) -> None:
    events = [
        event("custom", "step", number, 1, args={"text": "x" * length})
        for number, length in enumerate((10, 5000))
    ]
    report = imported(raw(events, tmp_path))
    assert report.tables["payloads"] == 1
    assert said(report)["payloads-cut"][1] == 1


def test_a_pipe_or_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(WarplensError, match="folder"):
        import_file(tmp_path, tmp_path / "out.warplens")
