"""Names come from the program, or from whoever sent the report: no output lets them command a terminal, a page or a spreadsheet."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from warplens.cli.printing.tables import as_markdown
from warplens.convert.finish import finish
from warplens.handover import pending
from warplens.testing import spool_writer as sw

NAMES = [
    "größe → \U0001f40d",
    "\x1b]0;owned\x07\x1b[2J",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM(A1)",
    "<img src=x onerror=y>",
    "![x](http://y)",
    "a|b",
]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    records = [
        sw.event("range", 1_000 + 10 * number, 1_005 + 10 * number, number)
        for number in range(1, len(NAMES) + 1)
    ]
    about = sw.meta("thread", 0, thread=0, tid=10, start=1_000)
    spool = sw.spool(
        [sw.strings(dict(enumerate(NAMES, 1))), sw.records(sw.NO_THREAD, [about]), sw.records(0, records)],
        end_ns=5_000,
    )
    sw.write(tmp_path / "spool", spool)
    finish(pending.adopt(tmp_path / "x.warplens", tmp_path / "spool", "x-1-1"), tmp_path / "x.warplens")
    return tmp_path / "x.warplens"


def ask(report: Path, form: str, **more: str) -> str:
    words = ["query", str(report), "SELECT message FROM nvtx_ranges ORDER BY id", "-f", form]
    done = subprocess.run(
        [sys.executable, "-m", "warplens", *words],
        env={**os.environ, **more},
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_a_terminal(*words: str) -> bytes:
    """Return what a command writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "warplens", *words], stdout=theirs, stderr=subprocess.DEVNULL
    ) as child:
        os.close(theirs)
        found = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # EIO: nobody has the other end any more
                break
            if not piece:
                break
            found += piece
        assert child.wait() == 0
    os.close(ours)
    return found


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "table", "markdown"])
def test_a_terminal_obeys_no_name(form: str, report: Path) -> None:
    for words in (
        ("query", str(report), "SELECT message FROM nvtx_ranges"),
        ("stats", "-q", "-r", "nvtx_sum", str(report)),
    ):
        said = on_a_terminal(*words, "-f", form)
        assert b"HYPERLINK" in said
        assert b"\x1b" not in said
        assert b"\x07" not in said


def test_a_program_gets_names_as_they_are(report: Path) -> None:
    assert [row[0] for row in csv.reader(ask(report, "csv").splitlines())] == ["message", *NAMES]


def test_no_name_is_a_formula_in_a_spreadsheet(report: Path) -> None:
    rows = [row[0] for row in csv.reader(ask(report, "spreadsheet").splitlines())]
    assert rows == ["message", *(f"'{name}" if name[0] in "=+-@" else name for name in NAMES)]


def test_numbers_stay_numbers_in_a_spreadsheet(report: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "warplens",
        "query",
        str(report),
        'SELECT -1 AS "=x", -0.5 AS y',
        "-f",
        "spreadsheet",
    ]
    assert subprocess.run(words, capture_output=True, check=True, text=True).stdout == "'=x,y\n-1,-0.5\n"


def test_no_name_is_a_tag_or_a_picture_in_markdown() -> None:
    (line,) = as_markdown(
        pa.table({"message": ["<img src=x> ![x](http://y) `a` \\ &lt; a|b *c*"]}), header=False
    )
    assert line == "| \\<img src=x> !\\[x](http://y) \\`a\\` \\\\ \\&lt; a\\|b \\*c\\* |"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_characters_outside_of_the_encoding_become_escapes(encoding: str, report: Path) -> None:
    assert "\\u2192 \\ud83d\\udc0d" in ask(report, "csv", PYTHONIOENCODING=encoding)
    text = ask(report, "json", PYTHONIOENCODING=encoding).encode().replace("\ufffd".encode(), b"?").decode()
    assert json.loads(text)[0]["message"][-3:] == "→ \U0001f40d"[-3:]


def test_the_c_locale_shows_stats(report: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "warplens", "stats", report],
        env={**os.environ, **plain},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\u00f6\\u00dfe" in done.stdout
