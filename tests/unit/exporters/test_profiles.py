"""The exporters of profiles (collapsed, speedscope, pprof): what other tools ask of such files, and the samples found again in them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.reports import cpu_story
from tests.unit.exporters import pprof_profile
from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import MissingData, UsageError
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

# Per stack of the story: how often it was seen while its thread ran.
RAN = {"load": 20 + 5, "load;memcpy": 5, "step;Model.forward": 40, "": 10}


def export(tmp_path: Path, kind: str, *, samples: str = "python", **options: Any) -> Path:
    cpu_story.write(tmp_path / "run.warplens", samples)
    unit = catalog.find("exporters.formats", kind)
    out = tmp_path / f"run{unit.constant('SUFFIX')}"
    unit.load().write(open_report(tmp_path / "run.warplens"), out, **options)
    return out


def collapsed(path: Path) -> Counter[str]:
    """Read lines as flamegraph.pl does: a count behind the last blank."""
    found: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        found[stack] += int(count)
    return found


@pytest.mark.slow
def test_collapsed_stacks_hold_all_samples(tmp_path: Path) -> None:
    main = "python;main (1000);<module> (train.py);main (train.py)"
    names = {
        "load": "load (train.py)",
        "memcpy": "memcpy (libc.so.6)",
        "step": "step (train.py)",
        "Model.forward": "Model.forward (model.py)",
    }
    wanted = {
        ";".join([main, *(names[name] for name in stack.split(";") if name)]): count
        for stack, count in RAN.items()
    }
    wanted["python;loader (1001);Thread.run (threading.py);fetch (loader.py)"] = 4
    assert collapsed(export(tmp_path, "collapsed")) == wanted
    again = collapsed(export(tmp_path / "wall", "collapsed", wall=True, lines=True))
    assert sum(again.values()) == sum(
        (end - begin) * 1000 // cpu_story.TICK for begin, end, *_ in cpu_story.SAMPLES
    )
    assert any(stack.endswith("load (train.py:22)") for stack in again)


def test_collapsed_names_cannot_break_lines(tmp_path: Path) -> None:
    frames = [{"frame": 1, "process": 0, "depth": 0, "kind": "kernel", "function": "a;b\n c"}]
    sample = {
        "id": 0,
        "process": 0,
        "thread": 0,
        "start": 0,
        "end": 0,
        "kind": "native",
        "count": 3,
        "weight": 3,
        "on_cpu": True,
    }
    tables = {"frames": frames, "samples": [{**sample, "stack": 1}, {**sample, "id": 1, "stack": None}]}
    timeline(tmp_path / "run.warplens", "main |[a  ]", origin=0, tables=tables)
    catalog.find("exporters.formats", "collapsed").load().write(
        open_report(tmp_path / "run.warplens"), tmp_path / "out"
    )
    assert collapsed(tmp_path / "out") == {
        "python;main (1000);a:b c_[k]": 3,
        "python;main (1000);[no stack]": 3,
    }


def check_speedscope(document: dict[str, Any]) -> None:
    """What https://www.speedscope.app/file-format-schema.json asks for."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(document) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    frames = document["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str)
        assert isinstance(frame.get("line", 1), int)
    assert document["profiles"]
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
        assert all(weight > 0 for weight in profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]


@pytest.mark.slow
def test_speedscope_takes_the_file(tmp_path: Path) -> None:
    document = json.loads(export(tmp_path, "speedscope").read_text(encoding="utf-8"))
    check_speedscope(document)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    main, loader = document["profiles"]
    assert (main["name"], loader["name"]) == ("python: main (1000)", "python: loader (1001)")
    found: Counter[str] = Counter()
    for stack, weight in zip(main["samples"], main["weights"], strict=True):
        if stack:
            assert [names[frame] for frame in stack[:2]] == ["<module>", "main"]
            found[";".join(names[frame] for frame in stack[2:])] += weight
    assert found == {stack: count * cpu_story.TICK for stack, count in RAN.items()}
    assert [] in main["samples"], "it waited in between"
    assert loader["startValue"] == 600_000
    assert names.count("load") == 1
    lines = json.loads(export(tmp_path / "lines", "speedscope", lines=True).read_text(encoding="utf-8"))
    check_speedscope(lines)
    assert [frame["line"] for frame in lines["shared"]["frames"] if frame["name"] == "load"] == [20, 22]


def test_pprof_decodes_to_the_same_samples(tmp_path: Path) -> None:
    profile = pprof_profile.read(export(tmp_path, "pprof", samples="native"))
    texts = list(profile.string_table)
    assert texts[0] == ""
    assert [(texts[each.type], texts[each.unit]) for each in profile.sample_type] == [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
    ]
    functions = {function.id: function for function in profile.function}
    locations = {location.id: location for location in profile.location}
    mappings = {mapping.id: mapping for mapping in profile.mapping}
    assert 0 not in {*functions, *locations, *mappings}
    found: Counter[str] = Counter()
    for sample in profile.sample:
        lines = [locations[id].line[0] for id in reversed(sample.location_id)]
        count, weight = sample.value
        assert weight == count * cpu_story.TICK
        about = {texts[label.key]: texts[label.str] or label.num for label in sample.label}
        assert about["tid"] in (1000, 1001)
        assert about["process"] == "python"
        if about["thread"] == "main (1000)":
            found[";".join(texts[functions[line.function_id].name] for line in lines[2:])] += count
    # native samples are of running threads, whatever the column says
    assert found == {**RAN, "step": 20}
    load = {
        locations[id].line[0].line
        for id in locations
        if texts[functions[locations[id].line[0].function_id].name] == "load"
    }
    assert load == {20, 22}
    assert {texts[function.name]: function.start_line for function in functions.values()}["load"] == 10
    (native,) = [location for location in profile.location if location.mapping_id]
    mapping = mappings[native.mapping_id]
    assert (texts[mapping.filename], texts[mapping.build_id], native.address) == (
        "/usr/lib/libc.so.6",
        "ab12",
        4100,
    )
    assert (profile.period, profile.duration_nanos) == (cpu_story.TICK, 1_150_000)
    assert texts[profile.default_sample_type] == "cpu"


def test_pprof_of_the_wall_clock_says_so(tmp_path: Path) -> None:
    profile = pprof_profile.read(export(tmp_path, "pprof", wall=True))
    assert profile.string_table[profile.sample_type[1].type] == "wall"
    assert sum(sample.value[1] for sample in profile.sample) == 2_000_000


@pytest.mark.parametrize("kind", ["collapsed", "speedscope", "pprof"])
def test_reports_without_such_samples_are_refused(kind: str, tmp_path: Path) -> None:
    unit = catalog.find("exporters.formats", kind).load()
    timeline(tmp_path / "none.warplens", "main |[a  ]")
    with pytest.raises(MissingData, match="CPU sampling"):
        unit.write(open_report(tmp_path / "none.warplens"), tmp_path / "out")
    with pytest.raises(UsageError, match="native"):
        unit.write(open_report(tmp_path / "none.warplens"), tmp_path / "out", kind="native", wall=True)
    assert not (tmp_path / "out").exists()


def run(*words: str) -> Any:
    return CliRunner().invoke(commands, ["export", *words])


@pytest.mark.slow
def test_the_command_passes_arguments_and_what_is_selected(tmp_path: Path) -> None:
    cpu_story.write(tmp_path / "run.warplens")
    report, out = str(tmp_path / "run.warplens"), tmp_path / "out"
    assert (
        run(
            "-q", "-f", "-t", "collapsed:lines", "-o", str(out), "--filter-time", "500us/900us", report
        ).exit_code
        == 0
    )
    assert collapsed(out) == {
        "python;main (1000);<module> (train.py:90);main (train.py:80);step (train.py:50);Model.forward (model.py:9)": 40,
        "python;loader (1001);Thread.run (threading.py:900);fetch (loader.py:12)": 4,
    }
    assert run("-q", "-f", "-t", "collapsed", "-o", str(out), "--filter-nvtx", "step2", report).exit_code == 0
    assert not any("loader" in stack for stack in collapsed(out)), "only what the thread of the range did"
    refused = run("-t", "collapsed:deep", report)
    assert "it takes: kind=…, wall, lines" in str(refused.exception)
    assert run("-q", "-f", "-t", "chrome", "-o", str(out), "--filter-time", "0/100us", report).exit_code == 0
    names = {
        event["name"]
        for event in json.loads(out.read_text(encoding="utf-8"))["traceEvents"]
        if event["ph"] == "X"
    }
    assert "step1" in names
    assert "step2" not in names


def test_a_part_of_a_report_is_cut_like_a_window(tmp_path: Path) -> None:
    cpu_story.write(tmp_path / "run.warplens")
    with (
        open_report(tmp_path / "run.warplens") as report,
        report.between(report.origin + 100_000, report.origin + 700_000) as part,
    ):
        assert part.span == (report.origin + 100_000, report.origin + 700_000)
        spans = [(row["message"], row["end"] - row["start"]) for row in part.table("nvtx_ranges").to_pylist()]
        assert sum(length for _, length in spans) == 600_000
        (states,) = part.sql('SELECT sum("end" - "start")::BIGINT AS ns FROM thread_states').to_pylist()
        assert states["ns"] == 2 * 600_000
