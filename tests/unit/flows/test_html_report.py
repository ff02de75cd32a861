"""The report as a page: what it shows is what the report says, it needs nothing beside itself, and names cannot do anything in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from warplens.cli.group import commands
from warplens.errors import UsageError
from warplens.flows.html import gpu_plots
from warplens.flows.html.page import page, table
from warplens.flows.html.plots import Series, bars, over_time, stacked
from warplens.flows.html.words import amount, safe
from warplens.flows.html_report import report_page
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
    main          |[step           ][step           ][step           ]
    main          | [load    ]       [load    ]
    main:api      | (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 ) (cudaStreamSynchronize )
    gpu0.7        |        (gemm#1   )          (HtoD#2  )
    gpu1.7        |     (nccl )
    gpu0:memory   |+4096   -4096
    main:state    |(running:1 )(blocked:poll )(runnable )
"""
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202egnp.exe\n&amp;"
slow = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
_VOID = {"meta", "line", "rect", "br"}


class Seen(HTMLParser):
    """Reads a page, and fails where tags are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")
        if tag not in _VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID or tag == "rect":
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(text: str) -> Seen:
    seen = Seen()
    seen.feed(text)
    seen.close()
    assert not seen.open, f"left open: {seen.open}"
    return seen


def harmless(seen: Seen) -> None:
    assert not seen.tags & {"script", "img", "iframe", "object", "link", "embed", "form", "base"}
    assert not [
        name for name in seen.attributes if name.startswith("on") or name in ("src", "srcset", "action")
    ]
    assert all(link.startswith("https://") for link in seen.attributes.get("href", ()))


def test_the_page_shows_the_facts_of_the_report(tmp_path: Path) -> None:
    cuda: dict[str, Any] = {"gpu0": {"name": "H100"}, "gpu1": {"name": "H100"}}
    timeline(
        tmp_path / "r.warplens",
        PICTURE,
        cuda=cuda,
        command=("python", "train.py"),
        realtime_offset=1_700_000_000_000_000_000,
    )
    seen = read(report_page(open_report(tmp_path / "r.warplens")))
    harmless(seen)
    text = " ".join(seen.text)
    for words in (
        "r.warplens",
        "python train.py",
        "2023-11-14",
        "Findings",
        "GPU utilisation over time",
        "H100",
        "gemm",
        "cudaLaunchKernel",
    ):
        assert words in text, words
    for words in ("Why GPUs were idle", "Kinds of GPU work", "Memory over time", "could not judge"):
        assert words in text, words


def test_names_do_nothing_in_it(tmp_path: Path) -> None:
    extra = {name: {"message": HOSTILE, "category": HOSTILE} for name in ("step", "load")}
    cuda = {"gemm": {"name": HOSTILE, "demangled": HOSTILE}, "gpu0": {"name": HOSTILE}}
    diagnostics = [{"severity": "warning", "code": "x", "source": "y", "message": HOSTILE}]
    command = ("python", HOSTILE)
    timeline(
        tmp_path / "r.warplens",
        PICTURE,
        extra=extra,
        cuda=cuda,
        diagnostics=diagnostics,
        command=command,
        host=HOSTILE,
    )
    text = report_page(open_report(tmp_path / "r.warplens"))
    seen = read(text)
    harmless(seen)
    assert "\u202e" not in text
    assert any("<script>alert(1)</script>" in piece for piece in seen.text), "it is shown as it is called"
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import|javascript:", text)


def test_reports_with_little_in_them(tmp_path: Path) -> None:
    for number, picture in enumerate(("main |[a ]", "main |[a ] !m", "gpu0.1 |(k )")):
        timeline(tmp_path / f"{number}.warplens", picture)
        harmless(read(report_page(open_report(tmp_path / f"{number}.warplens"))))


def test_a_part_of_a_report(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", PICTURE)
    text = report_page(open_report(tmp_path / "r.warplens"), Selection.parse("0/5us"))
    assert "5 us" in text


@slow
@given(st.lists(st.tuples(st.integers(0, 990), st.integers(1, 200)), min_size=1, max_size=20))
def test_shares_over_time_add_up_to_what_was_covered(pieces: list[tuple[int, int]]) -> None:
    end = 1_200
    inside = np.zeros(end, bool)
    for start, length in pieces:
        inside[start : start + length] = True
    changes = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False])).astype(int)))
    busy = gpu_plots.shares(changes[::2].astype(np.int64), changes[1::2].astype(np.int64), 0, end)
    assert busy.min() >= 0
    assert busy.max() <= 1
    assert np.isclose(busy.mean() * end, inside.sum())


def test_plots_say_their_values() -> None:
    seen = read(bars([("gemm", 2_000_000.0), ("<b>", 500.0)], "ns"))
    assert {"2 ms", "500 ns", "<b>"} <= set(seen.text)
    seen = read(stacked([("GPU 0", {"head": 1.0, "tail": 3.0})], "ns"))
    assert {"head: 1 ns (25.0 %)", "tail: 3 ns (75.0 %)"} <= set(seen.text)
    line = over_time([Series("a", np.array([1.0, np.nan, 3.0]))], 1_000, "bytes")
    assert "1 us" in read(line).text
    assert line.count("M") == 2, "where there is no value there is no line"


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(1_234_567, "ns", "1.23 ms"), (0, "ns", "0 ns"), (1536, "bytes", "1.5 KiB"), (12.5, "%", "12.5 %")],
)
def test_amounts_are_as_people_read_them(value: float, unit: str, shown: str) -> None:
    assert amount(value, unit) == shown


def test_tables_choose_their_units() -> None:
    rows = pa.table(
        {"Time (%)": [75.0, 25.0], "Total Time (ns)": [3_000_000, 1_000], "Name": ["a" * 60, None]}
    )
    seen = read(page("t", table(rows, most=1, more="all")))
    assert {"Total Time (ms)", "3.000", "… and 1 more: all"} <= set(seen.text)


@slow
@given(st.text())
def test_no_text_is_markup(text: str) -> None:
    shown = safe(text)
    assert not set(shown) & set("<>\"'")
    assert "".join(read(f"<p>{shown}</p>").text).isprintable()


def test_commands_write_pages(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", PICTURE)
    run = CliRunner().invoke(commands, ["export", "-t", "html", str(tmp_path / "r.warplens")])
    assert run.exit_code == 0, run.output
    harmless(read((tmp_path / "r.html").read_text(encoding="utf-8")))
    run = CliRunner().invoke(
        commands,
        [
            "stats",
            "-r",
            "cuda_gpu_kern_sum",
            "-f",
            "html",
            "-o",
            str(tmp_path / "out"),
            str(tmp_path / "r.warplens"),
        ],
    )
    assert run.exit_code == 0, run.output
    seen = read((tmp_path / "out_cuda_gpu_kern_sum.html").read_text(encoding="utf-8"))
    harmless(seen)
    assert "svg" in seen.tags
    run = CliRunner().invoke(commands, ["query", "-f", "html", str(tmp_path / "r.warplens"), "SELECT 1"])
    assert isinstance(run.exception, UsageError)
