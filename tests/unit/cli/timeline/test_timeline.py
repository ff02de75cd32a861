"""The terminal timeline: what it draws is compared with pictures in tests/golden/timeline."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.thorough import THOROUGH, few
from warplens.analysis.counters import all_series
from warplens.analysis.occupancy import cells, tracks
from warplens.cli.group import commands
from warplens.cli.timeline.axis import clock, ticks
from warplens.cli.timeline.gauges import column_values
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


GOLDEN = Path(__file__).parents[3] / "golden" / "timeline"
SMALL = "".join("[a]" if n % 3 else "[bb]" for n in range(300))
PICTURES = {
    "nested": """
main    |[step        ][step      ]  !save
main    |  [load ]
w@io    |     [read         ]
p1/main |        {async   }
w       |                      <open
""",
    "dense": f"""
main    |[epoch{" " * 600}][epoch{" " * 376}]
main    |  {SMALL}
main    |!a  !b{" " * 300}!checkpoint
loader  |{"[batch     ]" * 70}
""",
    "wide names": "main |[数据加载 ][ü  ] [x]\nmain |  [カーネル        ]",
    "tasks": """
main      |[run                                              ]
main#get  |   {fetch        }      {fetch        }   !done
main#get  |    [parse ]
main#put  |       {store             }
loop#load | {batch   }{batch   }{batch   }{batch   }
loop#t1   |  {wait      }
loop#t2   |      {wait      }
loop#t3   |          {wait              }      !late
loop#t4   |                                   {wait }
loop#t5   |                                     {wait }
loop#t6   |   {wait  }
loop#t7   |   {wait  }
""",
    "counters": """
main            |[step                 ][step                  ]
main~mem        |1000000 4000000  8000000 2000000 3000000   16000000
main~loss       |  2.5   2.25   2.3   2.1   2.0
main~sent@net   | 10  20  5        40      80
main~util@net   |50  75 ?        25      100
p1/main~events  |    1   2     3
""",
    "cuda": """
main          |[step                                            ][step                                           ]
main          | [forward                     ][backward        ]
main:api      |  (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )(cudaLaunchKernel#3 ) (cudaStreamSynchronize                    )
main:api      |    (cuLaunchKernel )
loader:api    |     (cudaMallocHost     )
gpu0.7        |       (gemm#1   )                        (softmax#3               )(gemm              )
gpu0.13       |                              (HtoD#2        )(memset   )         (DtoH      ) (all_reduce          )
gpu1.7        |   (gemm   )  (graph   )
gpu0:memory   |+1000000   +3000000        -1000000
gpu0~SM_Active|0    55.5        80        20      100       60
gpu3~Power    |100   300      200     100
p1/gpu0.7     |     (fill )
""",
}
COUNTERS: dict[str, dict[str, Any]] = {
    "mem": {"unit": "bytes", "interpolation": "until_next"},
    "loss": {"interpolation": "linear"},
    "sent": {"value_type": "delta", "unit": "packets", "scale": 1000.0},
    "util": {"unit": "%", "minimum": 0.0, "maximum": 100.0, "interpolation": "since_last"},
    "events": {"interpolation": "point"},
}
STYLES = {
    "plain": [],
    "ascii": ["--ascii"],
    "color": ["--color", "always"],
    "narrow": ["--width", "40"],
    "part": ["--range", "5us/15us", "--depth", "1"],
}


def draw(path: Path, *options: str) -> str:
    result = CliRunner().invoke(commands, ["timeline", str(path), *options])
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", few(PICTURES, 2))
def test_the_timeline_looks_like_its_golden_file(
    name: str, style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    timeline(tmp_path / "run.warplens", PICTURES[name], counters=COUNTERS)
    text = draw(tmp_path / "run.warplens", *STYLES[style])
    golden = GOLDEN / f"{name.replace(' ', '-')}-{style}.txt"
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("style", few(["plain", "color", "part"], 2))
@pytest.mark.parametrize("name", few(["nested", "cuda", "tasks", "dense", "wide names"], 3))
def test_a_large_report_looks_the_same(
    name: str, style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ranges, CUDA calls and GPU work come from the index instead of SQL."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.setattr("warplens.storage.manifest.INDEXED", 0)
    timeline(tmp_path / "run.warplens", PICTURES[name], counters=COUNTERS)
    text = draw(tmp_path / "run.warplens", *STYLES[style])
    assert text == (GOLDEN / f"{name.replace(' ', '-')}-{style}.txt").read_text(encoding="utf-8")
    assert list((tmp_path / "run.warplens" / "index").iterdir())


def test_no_line_is_too_long(tmp_path: Path) -> None:
    from rich.cells import cell_len

    ways: list[tuple[int, list[str]]] = [(40, []), (80, ["--ascii"]), (133, ["--color", "always"])]
    for number, (name, picture) in enumerate(PICTURES.items()):
        timeline(tmp_path / f"{name}.warplens", picture, counters=COUNTERS)
        for width, options in ways if THOROUGH else ways[number % 3 :][:1]:
            text = draw(tmp_path / f"{name}.warplens", "--width", str(width), *options)
            assert max(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= width


def test_ascii_is_ascii_and_no_color_means_none(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", PICTURES["dense"])
    assert draw(tmp_path / "run.warplens", "--ascii").isascii()
    assert "\x1b" not in draw(tmp_path / "run.warplens")
    assert "\x1b[48;" in draw(tmp_path / "run.warplens", "--color", "always")


def test_the_default_color_alone_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    blue = {"a": {"color": 0xFF}, "b": {"color": 0xFF}}
    timeline(tmp_path / "blue.warplens", "main |[a    ][b    ]", extra=blue)
    assert "48;2;0;0;255" not in draw(tmp_path / "blue.warplens", "--color", "always")
    timeline(tmp_path / "two.warplens", "main |[a    ][b    ]", extra={**blue, "b": {"color": 0xFF0000}})
    two = draw(tmp_path / "two.warplens", "--color", "always")
    assert "48;2;0;0;255" in two
    assert "48;2;255;0;0" in two


def test_filters_and_limits_say_what_they_leave_out(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main |[a    ]\nmain | [b ]\nio |[c ]\np1/main |[d       ]")
    report = tmp_path / "run.warplens"
    assert "├c" in draw(report, "--thread", "io")
    assert "├a" not in draw(report, "--thread", "io")
    assert "├d" in draw(report, "--process", "101")
    assert "2 less busy tracks not shown" in draw(report, "--tracks", "1")
    assert "+1 level" in draw(report, "--depth", "1")
    assert CliRunner().invoke(commands, ["timeline", str(report), "--thread", "nope"]).exit_code != 0
    assert CliRunner().invoke(commands, ["timeline", str(report), "--range", "5s/6s"]).exit_code != 0


def test_tasks_and_counters_can_be_folded(tmp_path: Path) -> None:
    report = tmp_path / "run.warplens"
    timeline(report, PICTURES["tasks"] + PICTURES["counters"], counters=COUNTERS)
    assert "+5 tasks" in draw(report, "--tasks", "3")
    assert "    load" in draw(report, "--tasks", "3")  # the busiest
    assert "    t7" in draw(report, "--tasks", "100")
    assert "3 counters not shown: --counters N" in draw(report, "--counters", "1", "--process", "100")
    assert "mem" not in draw(report, "--thread", "loop")
    only = CliRunner().invoke(commands, ["timeline", str(report), "--range", "46us/48us"])
    assert only.exit_code == 0, "counters hold on where nothing runs"


def test_a_column_has_the_highest_value(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main~n |1  9 2  ?  4\nmain |[run           ]", counters={"n": {}})
    report = open_report(tmp_path / "run.warplens")
    (series,) = all_series(report)
    window = (report.origin, report.origin + 16_000)
    assert [None if value != value else value for value in column_values(series, window, 4)] == [9, 2, 4, 4]
    assert column_values(series, window, 16).tolist()[:6] == [1, 1, 1, 9, 9, 2]
    series.facts["value_type"] = "delta"
    assert [None if value != value else value for value in column_values(series, window, 4)] == [
        10,
        2,
        4,
        None,
    ]


def test_columns_add_up_to_the_time_of_the_ranges(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", PICTURES["dense"], tick_ns=997)
    report = open_report(tmp_path / "run.warplens")
    window = (report.origin + 12_345, report.end - 54_321)
    clipped = report.sql(
        f'SELECT depth, sum(least("end", {window[1]}) - greatest("start", {window[0]}))::BIGINT AS time FROM nvtx_ranges'
        f' WHERE "start" < {window[1]} AND "end" > {window[0]} GROUP BY ALL ORDER BY depth'
    ).to_pylist()
    for columns in (7, 64, 1000):
        found = cells(report, window, columns, 100).to_pylist()
        width = (window[1] - window[0]) / columns
        for row in clipped:
            drawn = sum(cell["busy"] * width for cell in found if cell["depth"] == row["depth"])
            assert drawn == pytest.approx(row["time"], rel=1e-9)
        assert all(0 <= cell["busy"] <= 1 and 0 <= cell["col"] < columns for cell in found)
    assert {row["lanes"] for row in tracks(report, window).to_pylist()} == {2, 1}


@pytest.mark.parametrize(
    ("begin", "end", "labels"),
    [
        (0, 10**9, ["0", "200 ms", "400 ms", "600 ms", "800 ms"]),
        (
            10**9,
            10**9 + 100,
            ["1.00000000 s", "1.00000002 s", "1.00000004 s", "1.00000006 s", "1.00000008 s"],
        ),
        (5, 35, ["10 ns", "20 ns", "30 ns"]),
    ],
)
def test_ticks_are_at_round_times(begin: int, end: int, labels: list[str]) -> None:
    assert [tick.label for tick in ticks(begin, end, 64)] == labels


def test_times_have_the_digits_their_step_needs() -> None:
    assert (clock(1_500_000, 500_000), clock(2_000_000_000, 10**9), clock(1_234_567, 1)) == (
        "1.5 ms",
        "2 s",
        "1.234567 ms",
    )


def test_metrics_are_with_the_one_process_that_uses_the_gpu(tmp_path: Path) -> None:
    row = {"unit": "%", "metric": "SM Active"}
    metrics = [
        {**row, "host": host, "gpu": 0, "uuid": uuid, "start": 1_000_000_000 + at, "value": 50.0}
        for host, uuid in (("a", "GPU-0"), ("b", "GPU-7"))
        for at in (0, 4_000)
    ]
    timeline(tmp_path / "run.warplens", "gpu0.7 |(k       )", tables={"gpu_metrics": metrics})
    lines = draw(tmp_path / "run.warplens").splitlines()
    first, second = (index for index, line in enumerate(lines) if "SM Active" in line)
    assert [line for line in lines[:first] if line.startswith("GPU")] == ["GPU 0 (python)"]
    assert [line for line in lines[first:second] if line.startswith("GPU")] == ["GPU 0 (whole device of b)"]


def test_idle_gpus_that_nobody_used_are_left_out(tmp_path: Path) -> None:
    metrics = [
        {
            "host": "host",
            "gpu": gpu,
            "uuid": f"GPU-{gpu}",
            "metric": metric,
            "unit": unit,
            "start": 1_000_000_000 + at,
            "value": value,
        }
        for gpu, value in ((0, 0.0), (1, 0.0), (2, 30.0))
        for metric, unit in (
            ("Clock", "MHz"),
            ("Fan", ""),
            ("Power", "W"),
            ("SM Active", "%"),
            ("Temperature", "C"),
            ("Voltage", "V"),
        )
        for at in (0, 4_000)
    ]
    timeline(
        tmp_path / "run.warplens", "main |[a      ]\ngpu0.7 |(k       )", tables={"gpu_metrics": metrics}
    )
    shown = draw(tmp_path / "run.warplens")
    assert "GPU 0 (python)" in shown, "used, though idle"
    assert "GPU 1" not in shown
    assert "GPU 2 (whole device)" in shown
    first = [
        line.split("  ")[1]
        for line in shown.splitlines()
        if line.startswith("  ") and line.strip()[:1].isalpha()
    ]
    assert [name.strip() for name in first[-4:]] == ["SM Active", "Power", "Clock", "Fan"]
    assert "4 counters not shown" in shown


def test_gpus_are_those_of_the_processes_asked_for(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main |[a   ]\ngpu0.7 |(k   )\np1/main |[b   ]\np1/gpu1.9 |(k   )")
    shown = draw(tmp_path / "run.warplens", "--process", "101")
    assert "GPU 1" in shown
    assert "GPU 0" not in shown
    assert "GPU" not in draw(tmp_path / "run.warplens", "--thread", "main")


def test_a_window_shows_its_gpu_work_alone(tmp_path: Path) -> None:
    """Which runs after it closed, as `first` runs in it."""
    picture = (
        "main:api |(launch#1 ) (launch#2 )\ngpu0.7  |   (first#1 )     (second#2 )\nwindows |           [w  ]"
    )
    timeline(tmp_path / "run.warplens", picture)
    shown = draw(tmp_path / "run.warplens", "--window", "1")
    assert "second" in shown
    assert "first" not in shown
