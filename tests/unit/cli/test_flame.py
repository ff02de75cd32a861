"""`warplens flame`: pictures in tests/golden/flame, which samples are looked at, and what it says where there are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.reports import cpu_story
from warplens.cli.group import commands
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


GOLDEN = Path(__file__).parents[2] / "golden" / "flame"
STYLES = {
    "plain": [],
    "ascii": ["--ascii", "--reverse", "--width", "60"],
    "color": ["--color", "always", "--by", "module"],
    "threads": ["--wall", "--per-thread", "--width", "110"],
    "tree": ["--tree", "--by", "line"],
}


def ask(path: Path, *options: str) -> Result:
    return CliRunner().invoke(commands, ["flame", str(path), *options])


def draw(path: Path, *options: str) -> str:
    result = ask(path, *options)
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    cpu_story.write(tmp_path / "run.warplens")
    return tmp_path / "run.warplens"


@pytest.mark.parametrize("style", STYLES)
def test_the_flame_graph_looks_like_its_golden_file(style: str, story: Path) -> None:
    assert draw(story, *STYLES[style]) == (GOLDEN / f"{style}.txt").read_text(encoding="utf-8")


def test_no_line_is_too_long(story: Path) -> None:
    from rich.cells import cell_len

    for width in (40, 133):
        for options in (["--by", "line", "--color", "always"], ["--tree"]):
            text = draw(story, "--width", str(width), *options).partition("\n")[2]
            assert max(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= width


def test_only_samples_of_threads_that_handled_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = cpu_story.tables()
    for row in told["samples"]:
        row["exception"] = row["stack"] in (3, 6)  # load, Model.forward
    monkeypatch.setattr(cpu_story, "tables", lambda samples="python", app="/app": told)
    cpu_story.write(tmp_path / "run.warplens")
    text = draw(tmp_path / "run.warplens", "--exceptions", "--tree")
    assert text.startswith("run: 60 Python samples of threads that ran and handled an exception, 1 thread\n")
    assert re.search(r"66\.7 % +Model\.forward", text)
    assert "no thread of run.warplens has a sample that handled an exception in the selected part." in str(
        ask(tmp_path / "run.warplens", "--exceptions", "--filter-time", "900us/1ms").exception
    )
    assert "leave out --kind" in str(
        ask(tmp_path / "run.warplens", "--exceptions", "--kind", "native").exception
    )


def test_reports_that_do_not_know_of_exceptions_say_so(story: Path) -> None:
    assert "does not say which threads handled an exception" in str(ask(story, "--exceptions").exception)


def test_the_head_counts_the_selected_samples(story: Path) -> None:
    assert "84 Python samples of threads that ran, 2 threads" in draw(story)
    assert "\n├Thread.run" in draw(story, "--thread", "loader")
    assert "4 Python samples of threads that ran, 1 thread\n" in draw(story, "--thread", "1001")
    in_range = draw(story, "--filter-nvtx", "step1")
    assert "load" in in_range
    assert "fetch" not in in_range, "the other thread was in no such range"
    part = draw(story, "--filter-time", "500us/900us", "--thread", "main")
    assert part.startswith("run: 40 Python samples")
    assert "load" not in part


def test_levels_and_shares_that_are_left_out_are_told(story: Path) -> None:
    assert "2 deeper levels: --depth N" in draw(story, "--depth", "2")
    assert "6 of 8 not shown: --min PERCENT, --depth N" in draw(story, "--tree", "--min", "90")
    assert "Self" not in draw(story, "--top", "0")


def test_shares_are_compared_with_a_baseline(
    story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = draw(story, "--baseline", str(story))
    assert same.count("84 Python samples") == 2
    assert "(+" not in same
    assert "(-" not in same
    # `forward` took 400 us of 840 in which threads ran; before, it took 100, and `load` 200 more.
    before = [(0, 500, 3, True, 0), (500, 600, 6, True, 0), *cpu_story.SAMPLES[5:]]
    monkeypatch.setattr(cpu_story, "SAMPLES", before)
    cpu_story.write(tmp_path / "before.warplens")
    shown = draw(story, "--baseline", str(tmp_path / "before.warplens"), "--width", "120")
    now, then = 400 / 840, 100 / 740
    assert f"Model.forward {now:.0%} ({(now - then) * 100:+.1f})" in shown
    assert (
        f"{(now - then) * 100:+5.1f} %  {now * 100:4.1f} %  {then * 100:4.1f} %  Model.forward  model.py:5"
        in shown
    )
    assert f"{(200 + 50) / 840 * 100 - 500 / 740 * 100:+5.1f} %" in shown, "load has less of its own"
    tree = draw(story, "--tree", "--baseline", str(tmp_path / "before.warplens"))
    assert "  Total    Self  Change" in tree
    assert f"{now * 100:5.1f} %  {now * 100:4.1f} % {(now - then) * 100:+5.1f} %" in tree


def test_a_share_that_grew_is_red_and_one_that_shrank_is_blue(
    story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setattr(
        cpu_story, "SAMPLES", [(0, 500, 3, True, 0), (500, 600, 6, True, 0), *cpu_story.SAMPLES[5:]]
    )
    cpu_story.write(tmp_path / "before.warplens")
    shown = draw(
        story, "--baseline", str(tmp_path / "before.warplens"), "--color", "always", "--width", "120"
    )
    colors = {
        name: re.search(rf"48;2;(\d+);(\d+);(\d+);[^m]*m.{name}", shown) for name in ("Model.forward", "load")
    }
    grew, shrank = (tuple(map(int, found.groups())) for found in colors.values() if found)
    assert grew == (0xDC, 0x50, 0x50)
    assert shrank == (0x50, 0x78, 0xDC)


def test_waiting_is_seen_by_os_calls(story: Path) -> None:
    shown = draw(story, "--kind", "osrt")
    assert "3 calls of the C library that were long enough for a stack, 2 threads" in shown
    assert " 82.6 %  82.6 %  fetch  loader.py:8" in shown


def test_native_samples_are_shown_where_there_are_any(tmp_path: Path) -> None:
    cpu_story.write(tmp_path / "run.warplens", "native")
    assert "native samples" in draw(tmp_path / "run.warplens")
    refused = ask(tmp_path / "run.warplens", "--kind", "python")
    assert "has no python samples; it has native ones" in str(refused.exception)


def test_without_samples_it_says_how_to_get_some(tmp_path: Path, story: Path) -> None:
    timeline(tmp_path / "none.warplens", "main |[a  ]")
    refused = ask(tmp_path / "none.warplens")
    assert refused.exit_code != 0
    assert "--sample=process-tree" in str(refused.exception)
    assert "-t osrt" in str(ask(tmp_path / "none.warplens", "--kind", "osrt").exception)
    assert "is called nobody" in str(ask(story, "--thread", "nobody").exception)
    assert "--wall" in str(ask(story, "--filter-time", "310us/480us").exception)


TASKS = """
main:task |(A:outer<*A;main       )(A:running<*A;main;work      )
main:task |(B<*A;main;*B;fetch;get)
"""


def test_tasks_stand_below_those_that_await_them(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", TASKS, tick_ns=1_000_000)
    lines = draw(
        tmp_path / "run.warplens", "--kind", "tasks", "--wall", "--tree", "--color", "never"
    ).splitlines()
    assert lines[0] == "run: 54 samples of asyncio tasks that ran or waited, 1 thread"
    assert [re.sub(r"  \S+:\d+$", "", line[17:]) for line in lines[2:]] == [
        "task A",
        "  main",
        "    work",
        "    task B",
        "      fetch",
        "        get",
    ]
    ran = draw(tmp_path / "run.warplens", "--kind", "tasks", "--tree", "--color", "never")
    assert "30 samples of asyncio tasks that ran," in ran
    assert "task B" not in ran
    assert "100.0 %   0.0 %  tasks  task" in draw(
        tmp_path / "run.warplens", "--kind", "tasks", "--tree", "--by", "module"
    )


def test_without_task_samples_flame_explains_why(tmp_path: Path, story: Path) -> None:
    refused = str(ask(story, "--kind", "tasks").exception)
    assert (
        "run.warplens has no samples of asyncio tasks; record a program that uses asyncio, with "
        "CPython 3.11 or later" in refused
    )
    timeline(tmp_path / "waits.warplens", "main:task |(B<*B;get )")
    refused = str(ask(tmp_path / "waits.warplens", "--kind", "tasks").exception)
    assert "samples of waiting tasks; --wall shows them" in refused


def test_threads_that_only_wait_are_not_in_wall_time(tmp_path: Path) -> None:
    picture = """
    main:python |(main;wait        )(main;work       )
    idle:python |(run;get                            )
    """
    blocked = {"on_cpu": False}
    cpu = {"run;get": blocked, "main;wait": blocked}
    timeline(tmp_path / "run.warplens", picture, main="main", cpu=cpu)
    text = ask(tmp_path / "run.warplens", "--wall", "--tree", "--color", "never").output
    assert "1 thread that only waited at one place left out" in text
    assert "wait" in text
    assert "get" not in text
    assert (
        "get" in ask(tmp_path / "run.warplens", "--wall", "--per-thread", "--tree", "--color", "never").output
    )
