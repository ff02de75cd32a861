"""Profiles of cProfile become samples: times of functions stay those of the file, stacks are estimated, no file can do harm."""

from __future__ import annotations

import cProfile
import marshal
import pstats
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warplens
from tests.support.thorough import examples
from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.samples import sampled
from warplens.analysis.cpu.stacks import Weights, flat, top_down
from warplens.errors import NotAReport, ReportError
from warplens.importers.formats.pstats import recognises
from warplens.importers.importing import format_of, import_file
from warplens.importers.profiles import estimated
from warplens.report import Report
from warplens.report.selection import Selection

MAIN, LOAD, STEP, SLEEP = (
    ("/app/train.py", 1, "main"),
    ("/app/train.py", 10, "load"),
    ("/app/train.py", 20, "step"),
    ("~", 0, "<sleep>"),
)
# load has 3 of the 4 s that main spends in sleep's callers; a caller's entry is calls, primitive ones, own and total time
STATS: dict[Any, Any] = {
    MAIN: (1, 1, 0.5, 8.0, {}),
    LOAD: (1, 1, 1.0, 4.0, {MAIN: (1, 1, 1.0, 4.0)}),
    STEP: (5, 5, 2.5, 3.5, {MAIN: (5, 5, 2.5, 3.5)}),
    SLEEP: (9, 9, 4.0, 4.0, {LOAD: (4, 4, 3.0, 3.0), STEP: (5, 5, 1.0, 1.0)}),
}


def write(folder: Path, stats: Any, name: str = "run.prof") -> Path:
    (folder / name).write_bytes(stats if isinstance(stats, bytes) else marshal.dumps(stats))
    return folder / name


def opened(path: Path) -> Report:
    import_file(path, path.with_suffix(".warplens"))
    return warplens.open(path.with_suffix(".warplens"))


def times(report: Report) -> dict[str, tuple[int, int]]:
    """Own and total time of each function, in ns."""
    frames = FrameTable.of(report)
    tree = flat(top_down(frames, "function", Weights.of(frames, sampled(report, Selection()))))
    return {
        frames.frame(int(example)).function: (int(own), int(total))
        for example, own, total in zip(tree.example, tree.own, tree.total, strict=True)
    }


def stacks(report: Report) -> dict[str, int]:
    """The time of each stack, in ms."""
    frames = FrameTable.of(report)
    rows = sampled(report, Selection())
    return {
        ";".join(frame.function for frame in frames.path(int(stack))): weight // 10**6
        for stack, weight in zip(
            frames.positions(rows.column("stack")), rows.column("weight").to_pylist(), strict=True
        )
    }


def test_times_are_those_of_the_file_and_stacks_follow_the_callers(tmp_path: Path) -> None:
    with opened(write(tmp_path, STATS)) as report:
        assert stacks(report) == {
            "main": 500,
            "main;load": 1000,
            "main;load;<sleep>": 3000,
            "main;step": 2500,
            "main;step;<sleep>": 1000,
        }
        assert times(report)["main"] == (500_000_000, 8_000_000_000)
        kinds = {
            row["function"]: (row["kind"], row["file"], row["first_line"], row["line"])
            for row in report.table("frames").to_pylist()
        }
        assert kinds["load"] == ("python", "/app/train.py", 10, None)
        assert kinds["<sleep>"] == ("native", None, None, None)
        (notice,) = report.table("diagnostics").to_pylist()
        assert notice["code"] == "estimated-stacks"
        assert sum(report.table("samples").column("count").to_pylist()) == 8_000_000


def leaf(number: int) -> int:
    return sum(each * each for each in range(number))


def twice(number: int) -> int:
    return leaf(number) + leaf(number)


def fib(number: int) -> int:
    return number if number < 2 else fib(number - 1) + fib(number - 2)


@pytest.mark.parametrize("module", ["cProfile", "profile"])
def test_a_real_profile(module: str, tmp_path: Path) -> None:
    profile = __import__(module).Profile()
    # A function that two others call would have its callees' time shared out by estimate.
    profile.runcall(lambda: (twice(2000), fib(10), sorted([2, 1])))
    profile.dump_stats(tmp_path / "run.prof")
    stats = pstats.Stats(str(tmp_path / "run.prof"))
    with opened(tmp_path / "run.prof") as report:
        found = times(report)
        for (_, _, name), (_, _, own, total, _) in stats.stats.items():  # type: ignore[attr-defined]
            if name in ("twice", "leaf", "fib"):
                assert found[name][0] == pytest.approx(own * 1e9, abs=2)
            if (
                name in ("twice", "leaf") and module == "cProfile"
            ):  # they do not call themselves; `profile` has no times of callers
                assert found[name][1] == pytest.approx(total * 1e9, rel=0.01)
        assert sum(own for own, _ in found.values()) == pytest.approx(stats.total_tt * 1e9, rel=1e-6)  # type: ignore[attr-defined]


def test_the_sampling_profiler_of_python_3_15(tmp_path: Path) -> None:
    """It writes how many samples ended in a line and how many passed it, callers with samples alone, and a key that says so."""
    outer, inner = ("/app/train.py", 80, "main"), ("/app/train.py", 20, "load")
    stats = {
        outer: (10, 50, 0.01, 0.05, {}),
        inner: (40, 40, 0.04, 0.04, {outer: 40}),
        ("__sampled__",): True,
    }
    with opened(write(tmp_path, stats, "run.pstats")) as report:
        samples = report.table("samples").to_pylist()
        assert [(row["count"], row["weight"]) for row in samples] == [(10, 10_000_000), (40, 40_000_000)]
        assert stacks(report) == {"main": 10, "main;load": 40}
        assert [(row["line"], row["first_line"]) for row in report.table("frames").to_pylist()] == [
            (80, None),
            (20, None),
        ]


def test_samples_of_a_function_in_many_stacks_add_up(tmp_path: Path) -> None:
    callers = [("/a.py", line, f"caller{line}") for line in range(1, 11)]
    stats: dict[Any, Any] = {caller: (0, 1, 0.0, 0.001, {}) for caller in callers}
    stats[LOAD] = (7, 10, 0.007, 0.01, dict.fromkeys(callers, 1))
    with opened(write(tmp_path, {**stats, ("__sampled__",): True})) as report:
        assert sum(report.table("samples").column("count").to_pylist()) == 7
        assert report.table("samples").num_rows == 10


def test_functions_that_call_themselves_keep_their_time(tmp_path: Path) -> None:
    """Of `even` and `odd`, which call each other, and of `tree`, which calls itself."""
    even, odd, tree = ("/a.py", 1, "even"), ("/a.py", 5, "odd"), ("/a.py", 9, "tree")
    stats = {
        MAIN: (1, 1, 1.0, 10.0, {}),
        even: (1, 50, 3.0, 5.0, {MAIN: (1, 1, 0.1, 5.0), odd: (49, 1, 2.9, 4.9)}),
        odd: (1, 50, 2.0, 4.9, {even: (50, 1, 2.0, 4.9)}),
        tree: (1, 99, 4.0, 4.0, {MAIN: (1, 1, 0.1, 4.0), tree: (98, 1, 3.9, 3.9)}),
    }
    with opened(write(tmp_path, stats)) as report:
        assert {name: own // 10**6 for name, (own, _) in times(report).items()} == {
            "main": 1000,
            "even": 3000,
            "odd": 2000,
            "tree": 4000,
        }
        assert times(report)["main"][1] == 10**10
        assert "main;even;odd" in stacks(report)


def test_very_many_stacks_are_not_written_out() -> None:
    """Twenty levels of two functions that both call both of the next level: a million stacks."""
    functions = [estimated.ProfiledFunction(10**9, 0.0) for _ in range(40)]
    for level in range(20):
        for number in (2 * level, 2 * level + 1):
            functions[number].total = (20 - level) * 1e9
            functions[number].callers = (
                {2 * level - 2: (20 - level) * 5e8, 2 * level - 1: (20 - level) * 5e8} if level else {}
            )
    found = estimated.places(functions, 1000)
    assert 40 <= len(found) <= 1040
    own = [0] * 40
    for number, place in enumerate(found):
        assert place.parent < number
        own[place.function] += place.own
    assert own == [10**9] * 40


def test_other_files_are_left_to_other_formats(tmp_path: Path) -> None:
    assert format_of(write(tmp_path, STATS)).id == "pstats"
    for data in (
        b'{"a": 1}',
        b"{}",
        b"",
        b"\x1f\x8b\x08\x00",
        marshal.dumps([1]),
        marshal.dumps({"a": 1}),
        b"(" * 9,
    ):
        assert not recognises(write(tmp_path, data, "other.prof"))
    with pytest.raises(NotAReport, match="is no profile of cProfile"):
        format_of(tmp_path / "other.prof")


HOSTILE = {
    "lambda": ({MAIN: (lambda: 0).__code__}, "a value of the type 'c'"),
    "list": ({MAIN: (1, 1, 0.5, 1.0, [])}, "a value of the type '\\['"),
    "entry": ({MAIN: (1, 1, 0.5, 1.0)}, "lacks its callers"),
    "no callers": ({MAIN: (1, 1, 0.5, 1.0, ())}, "lacks its callers"),
    "caller": ({MAIN: (1, 1, 0.5, 1.0, {LOAD: "x"})}, "is not a caller"),
    "text": ({MAIN: (1, 1, "0.5", 1.0, {})}, "is not that of a function"),
    "not finite": ({MAIN: (1, 1, float("nan"), 1.0, {})}, "nan s by itself"),
    "long": ({MAIN: (1, 1, 1e12, 1e12, {})}, "is broken"),
    "long together": (
        {("a.py", line, "f"): (1, 1, 3e9, 3e9, {}) for line in range(1, 3)},
        "more than a century",
    ),
    "no time": ({MAIN: (1, 1, 0.0, 0.0, {})}, "contains no time"),
    "large": ({MAIN: (1 << 200, 1, 0.5, 1.0, {})}, "a number that is too large"),
    "behind": (marshal.dumps(STATS) + b"N", "more than one value"),
    "cut off": (marshal.dumps(STATS)[:-5], "is cut off"),
    "long tuple": (b"{)\x03z\x01ai\0\0\0\0z\x01b(\xff\xff\xff\xff", "is cut off"),
    "itself": (b"{)\x03z\x01ai\0\0\0\0z\x01b\xa9\x01r\0\0\0\0", "a reference to nothing"),
    "deep": (b"{)\x03z\x01ai\0\0\0\0z\x01b" + b")\x01" * 5000, "more than 8 values in each other"),
    "key": (b"{)\x03z\x01ai\0\0\0\0z\x01b{)\x04NNNNN0", "a key that is not a function"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_broken_file_is_told(name: str, tmp_path: Path) -> None:
    stats, message = HOSTILE[name]
    path = write(tmp_path, stats)
    with pytest.raises(ReportError, match=message):
        import_file(path, tmp_path / "run.warplens")
    assert not (tmp_path / "run.warplens").exists()


@settings(
    max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damaged_files_raise_nothing_else(tmp_path: Path, data: st.DataObject) -> None:
    whole = bytearray(marshal.dumps(STATS))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path, bytes(whole[: data.draw(st.integers(1, len(whole)))]))
    report = tmp_path / f"{len(list(tmp_path.iterdir()))}.warplens"
    try:
        import_file(path, report)
    except ReportError:
        assert not report.exists()


def test_profiles_of_the_program_itself_are_read(tmp_path: Path) -> None:
    """What `Stats.dump_stats` wrote after `strip_dirs` and `add` is the same format."""
    profile = cProfile.Profile()
    profile.runcall(twice, 500)
    stats = pstats.Stats(profile).strip_dirs()
    stats.add(pstats.Stats(profile).strip_dirs())
    stats.dump_stats(tmp_path / "run.prof")
    with opened(tmp_path / "run.prof") as report:
        assert "twice" in times(report)
