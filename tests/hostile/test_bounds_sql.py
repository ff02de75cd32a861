"""SQL of the page takes its share of memory and time and no more, whatever is asked; the page goes on meanwhile."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.page.viewing import PATIENCE_S, PICTURE, Client, serving
from tests.support.programs.launching import COMMAND, SRC, environment
from warplens.report import open as open_report
from warplens.testing.timeline import timeline
from warplens.viewer import limits
from warplens.viewer.answers.asking import SqlProcesses
from warplens.viewer.answers.loaded_report import Opened

ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
BESIDE = 1 << 30  # bytes: what a process of SQL has before it is asked


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bounds") / "run.warplens"
    timeline(path, PICTURE)
    return path


@pytest.fixture(scope="module")
def client(report: Path) -> Iterator[Client]:
    with serving(report) as found:
        yield found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT list(range) FROM range(100000000)",
        "SELECT range(0, 1000000000)",
        "SELECT list(range) FROM range(0, 1000000000)",
        "SELECT repeat('x', 4000000000)",
        "SELECT string_agg(repeat('x', 1000), '') FROM range(10000000)",
    ],
)
def test_no_question_takes_more_memory_than_there_is_for_one(client: Client, text: str) -> None:
    answer = client.sql(text)
    assert answer.status == 400
    assert any(
        words in answer.json["error"]
        for words in ("more memory", "longer than", "one row of the answer is larger")
    )
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10 < limits.SQL_MEMORY + BESIDE
    assert client.sql("SELECT count(*) AS n FROM kernels").json["rows"] == [[2]]


def test_a_question_without_end_is_ended_at_its_time(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_S", 1.0)
    answer = client.sql(ENDLESS)
    assert answer.status == 400
    assert (
        answer.json["error"] == "the query took longer than 1 s: ask about less time, or add LIMIT and WHERE"
    )


def test_two_questions_without_end_stop_nobody_else(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_S", 3.0)
    with ThreadPoolExecutor(3) as pool:
        endless = [pool.submit(client.sql, ENDLESS) for _ in range(limits.SQL_AT_ONCE)]
        for _ in range(3):
            assert (
                client.api("viewport", report=0, begin=0, end=60_000, width=400, tracks="0-30").status == 200
            )
        assert client.api("stat/nvtx_sum", report=0, begin=0, end=9_000).status == 200
        assert not any(one.done() for one in endless)
        assert client.sql("SELECT count(*) AS n FROM kernels").json["rows"] == [[2]]
        assert [one.result().status for one in endless] == [400] * limits.SQL_AT_ONCE


def test_an_answer_has_so_many_bytes_and_no_more(client: Client) -> None:
    answer = client.sql(
        "SELECT repeat(chr(1), 4000) AS t FROM range(10000)"
    )  # each is six characters of JSON
    assert len(answer.body) < limits.ANSWER + (1 << 20)
    assert answer.json["cut"]
    assert answer.json["rows"][0] == ["\x01" * 4000]
    one = client.sql("SELECT repeat('x', 30000000) AS t")
    assert (one.status, one.json["error"]) == (
        400,
        "one row of the answer is larger than 16 MiB: select less of it, e.g. left(text, 1000)",
    )


@pytest.mark.parametrize(
    "text", ["SELECT '\ud800'", "SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "SELECT " + "-" * 30_000 + "1"]
)
def test_text_that_is_no_sql_gets_an_error(client: Client, text: str) -> None:
    assert client.sql(text).status == 400


def test_a_report_that_was_opened_anew_is_asked_as_it_is_now(tmp_path: Path) -> None:
    processes = SqlProcesses()
    for message in ("one", "other"):
        timeline(tmp_path / f"{message}.warplens", f"main |[{message}    ]")
        with open_report(tmp_path / f"{message}.warplens") as report:
            answer = processes.ask(Opened(0, report), "SELECT message FROM nvtx_ranges")
            assert answer["table"]["rows"] == [[message]]
    processes.close()


def test_no_module_is_imported_from_the_current_folder(report: Path, tmp_path: Path) -> None:
    for name in ("json", "types", "pickle", "warplens", "duckdb"):
        (tmp_path / f"{name}.py").write_text(
            "import pathlib; pathlib.Path('imported').touch(); raise SystemExit"
        )
    text = f"""
import sys
sys.path[:0] = [{str(SRC)!r}, {str(SRC.parent)!r}]
from pathlib import Path
from tests.support.page.viewing import serving
with serving(Path({str(report)!r})) as client:
    print(client.sql("SELECT count(*) FROM kernels").json["rows"])
"""
    program = tmp_path.parent / f"{tmp_path.name}.py"
    program.write_text(text)
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[[2]]\n", "")
    assert not (tmp_path / "imported").exists()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_processes_of_sql_end_with_a_server_that_was_killed(report: Path) -> None:
    text = f"""
import sys, threading, time
sys.path[:0] = [{str(SRC)!r}, {str(SRC.parent)!r}]
from pathlib import Path
from tests.support.page.viewing import serving
with serving(Path({str(report)!r})) as client:
    client.sql("SELECT 1")
    threading.Thread(target=client.sql, args=({ENDLESS!r},), daemon=True).start()
    time.sleep(0.5)
    print("asked", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", text], env=environment(), stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "asked\n"
            children = [
                int(pid)
                for path in Path(f"/proc/{server.pid}/task").glob("*/children")
                for pid in path.read_text().split()
            ]
            assert children
        finally:
            server.kill()
    end = time.monotonic() + PATIENCE_S
    while any(map(_is_there, children)) and time.monotonic() < end:
        time.sleep(0.05)
    left = [pid for pid in children if _is_there(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in (
            "Z",
            "X",
        )
    except FileNotFoundError:
        return False


LITTLE = """
import resource, sys
from warplens.cli.main import main
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
main(sys.argv[1:])
"""


def test_a_command_without_memory_says_so_in_a_line(report: Path) -> None:
    words = ["query", str(report), "SELECT repeat('x', 4000000000) AS t"]
    done = subprocess.run(
        [sys.executable, "-c", LITTLE, *words], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "memory" in done.stderr.splitlines()[0]


def test_a_query_that_needs_too_much_memory_names_the_limit(report: Path) -> None:
    words = [
        "query",
        str(report),
        "SELECT count(DISTINCT repeat(range::VARCHAR, 200)) FROM range(2000000000)",
        "--any",
    ]
    limited = [sys.executable, "-c", LITTLE.replace("(3 << 30, 3 << 30)", "(2 << 30, 2 << 30)"), *words]
    done = subprocess.run(
        limited, env={**environment(), "TMPDIR": "/dev/null"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    limit = re.search(r"more memory than SQL may have here \(([\d,]+) MiB\)", done.stderr)
    assert limit is not None, done.stderr
    assert (
        32 < int(limit[1].replace(",", "")) < 1024
    )  # half of what was free when the report was opened; 32 is the least
    help_ = subprocess.run(
        [*COMMAND, "query", "--help"], env=environment(), capture_output=True, text=True, check=True
    ).stdout
    assert "half of the memory" in " ".join(help_.split())
