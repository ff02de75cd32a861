"""`warplens view` as people start it: its address, what it refuses, files of other tools, running programs, Perfetto."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from tests.support.page.browsing import served
from tests.support.page.viewing import PICTURE
from tests.support.programs.launching import COMMAND, environment, until, warplens
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.require("native")

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img/src=x/onerror=alert(1)>',
    "\u202eevil\u202c",
    "a\0b",
    "nul\u0000\u0001\u001b[31m",
    "x" * 100_000,
    "💥" * 50,
    "é" * 60 + "…" * 60,
    "'; DROP VIEW kernels; --",
    "../../etc/passwd",
    "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    "{{7*7}}${7*7}",
)
# Records a range for each line that it reads.
OBEDIENT = """
import sys
from warplens import nvtx
print("ready", flush=True)
for line in sys.stdin:
    with nvtx.annotate(line.strip()):
        pass
    print("did", flush=True)
"""


class Visitor:
    """A browser without a screen: it has the cookie."""

    def __init__(self, url: str) -> None:
        self._opener = build_opener(HTTPCookieProcessor())
        self._base = url.partition("/?")[0]
        self.page = self._opener.open(url, timeout=120).read().decode()

    def get(self, path: str) -> Any:
        answer = self._opener.open(f"{self._base}{path}", timeout=120)
        content = answer.read()
        return json.loads(content) if answer.headers["content-type"] == "application/json" else content

    def sql(self, text: str) -> Any:
        body = json.dumps({"report": 0, "text": text}).encode()
        asked = Request(f"{self._base}/api/1/sql", body, {"content-type": "application/json"})
        return json.loads(self._opener.open(asked, timeout=120).read())


@contextmanager
def refused(status: int) -> Iterator[None]:
    """Expect an answer with this status, and close it."""
    with pytest.raises(HTTPError) as caught:
        yield
    with caught.value as answer:
        assert answer.code == status


@pytest.fixture
def report(tmp_path: Path) -> Path:
    timeline(tmp_path / "run.warplens", PICTURE)
    return tmp_path / "run.warplens"


def test_the_address_is_printed_and_ctrl_c_ends_it(report: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "view", "--no-browser", report.name],
        cwd=report.parent,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert Visitor(url).get("/api/1/meta")["title"] == "run"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, rest) == (0, "")
    port = url.partition("127.0.0.1:")[2].partition("/")[0]
    assert f"ssh -N -L {port}:127.0.0.1:{port} " in errors
    assert socket.gethostname() in errors


def test_a_browser_is_started_where_there_is_a_screen(report: Path, tmp_path: Path) -> None:
    """With a token of its own, which is good for one visit."""
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > "$0.url.tmp"; mv "$0.url.tmp" "$0.url"\n')
    browser.chmod(0o755)
    env = {
        name: value
        for name, value in environment(BROWSER=str(browser), DISPLAY=":1").items()
        if name != "SSH_CONNECTION"
    }
    process = subprocess.Popen([*COMMAND, "view", "-q", report], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        printed = process.stdout.readline().strip()
        told = Path(f"{browser}.url")
        until(told.exists, "the browser")
        given = told.read_text().strip()
        assert given.partition("?")[0] == printed.partition("?")[0]
        assert given != printed
        Visitor(given)
        with refused(401):
            Visitor(given)
        Visitor(printed)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing"], "no report"),
        (["--host", "0.0.0.0", "run"], "--allow-remote"),
        (["--host", "10.255.255.255", "--allow-remote", "run"], "cannot listen"),
        (["--port", "70000", "run"], "70000"),
        (["--perfetto", "run", "run"], "a single, finished report"),
        (["--perfetto-ui", "ftp://x", "run"], "not an address of a Perfetto UI"),
        (["--perfetto-ui", "http://[", "run"], "not an address of a Perfetto UI"),
        (["run"] * 17, "too many"),
        ([], "REPORT"),
    ],
)
def test_view_explains_why_it_cannot_show_a_report(report: Path, words: list[str], told: str) -> None:
    result = warplens("view", "--no-browser", *words, cwd=report.parent)
    assert result.returncode != 0
    assert told in result.stderr


def test_a_port_that_is_taken_is_told(report: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = warplens("view", "--port", str(taken.getsockname()[1]), "run", cwd=report.parent)
    assert result.returncode == 2
    assert "cannot listen" in result.stderr


def test_other_machines_get_in_when_they_are_let(report: Path) -> None:
    command = [*COMMAND, "view", "--no-browser", "--host", "0.0.0.0", "--allow-remote", str(report)]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        printed = process.stdout.readline().strip()
        address, _, token = printed.partition("/?token=")
        assert address.startswith(f"http://{socket.gethostname()}:")
        here = f"http://127.0.0.1:{address.rpartition(':')[2]}"
        assert Visitor(f"{here}/?token={token}").get("/api/1/meta")
        request = Request(
            f"{here}/api/1/meta", headers={"Authorization": f"Bearer {token}", "Host": "evil.example"}
        )
        with refused(403):
            build_opener().open(request, timeout=60)
    finally:
        process.terminate()
        errors = process.communicate(timeout=60)[1]
    assert "the connection is not encrypted" in errors


def test_a_broken_report_is_told(report: Path) -> None:
    next((report / "manifest.d").glob("*.json")).write_text("{")
    result = warplens("view", "--no-browser", "run", cwd=report.parent)
    assert result.returncode == 1
    assert "broken" in result.stderr


def test_a_file_of_another_tool_is_opened(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": "work", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5}
        for n in range(20)
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    with served(
        "trace.json", cwd=tmp_path, env=environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    ) as server:
        visitor = Visitor(server.url)
        assert visitor.get("/api/1/meta")["reports"][0]["events"] == 20
        assert visitor.get("/api/1/search?report=0&text=work&from=0")["total"] == 20


def test_a_report_that_cannot_be_written_to_is_shown(report: Path, tmp_path: Path) -> None:
    (report / "index").write_text("there is no folder here")
    with served(report, cwd=tmp_path, env=environment(XDG_CACHE_HOME=str(tmp_path / "cache"))) as server:
        assert Visitor(server.url).get("/api/1/tracks?report=0")
    assert list((tmp_path / "cache").rglob("*.lanes"))


def test_hostile_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    timeline(tmp_path / "x.warplens", "main |" + "[r ]" * len(HOSTILE))
    _rename(tmp_path / "x.warplens", HOSTILE)
    with served("x.warplens", cwd=tmp_path) as server:
        visitor = Visitor(server.url)
        assert visitor.get("/api/1/tracks?report=0")
        view = visitor.get("/api/1/viewport?report=0&begin=0&end=1000000&width=1000&tracks=0-9")
        assert len(view) < 10_000
        for row, name in enumerate(HOSTILE):
            found = visitor.get(f"/api/1/event?report=0&table=nvtx_ranges&process=0&row={row}")
            assert found["title"] == (name if len(name) < 100_000 else found["title"])
            assert len(found["title"]) == len(name)
            assert visitor.get(f"/api/1/alike?report=0&table=nvtx_ranges&process=0&row={row}")["count"] == 1
        for path in (
            "stat/nvtx_sum?report=0",
            "flame?report=0&kind=nvtx",
            "search?report=0&text=script&from=0",
            "findings?report=0",
        ):
            assert visitor.get(f"/api/1/{path}")
        assert len(visitor.sql("SELECT message FROM nvtx_ranges")["rows"]) == len(HOSTILE)


def _rename(report: Path, names: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (file,) = (report / "tables" / "nvtx_ranges").glob("*.parquet")
    rows = pq.read_table(file)
    place = rows.schema.get_field_index("message")
    pq.write_table(
        rows.set_column(
            place,
            rows.schema.field(place),
            pa.array(names).dictionary_encode().cast(rows.schema.field(place).type),
        ),
        file,
    )


def test_view_refuses_a_report_that_would_fill_the_memory(report: Path) -> None:
    """A file of a few kilobytes that unpacks to half a gigabyte."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (file,) = (report / "tables" / "nvtx_ranges").glob("*.parquet")
    one = pq.read_table(file).slice(0, 1)
    number = 4_000_000
    made: dict[tuple[pa.DataType, Any], pa.Array] = {}  # columns of one type and value are one in memory here

    def column(name: str) -> pa.Array:
        value, kind = one.column(name)[0].as_py(), one.schema.field(name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_integer(plain):
            value = 0
        if (plain, value) not in made:
            made[plain, value] = (
                pa.nulls(number, plain) if value is None else pa.repeat(pa.scalar(value, plain), number)
            )
        return made[plain, value]

    fields = [pa.field(field.name, column(field.name).type, field.nullable) for field in one.schema]
    pq.write_table(
        pa.table([column(field.name) for field in fields], pa.schema(fields)),
        file,
        row_group_size=number,
        compression="zstd",
    )
    made.clear()
    assert file.stat().st_size < 1_000_000
    (manifest,) = (report / "manifest.d").glob("*.json")
    facts = json.loads(manifest.read_text())
    facts["tables"]["nvtx_ranges"]["rows"] = number
    manifest.write_text(json.dumps(facts))
    with served(report, cwd=report.parent) as server:
        visitor = Visitor(server.url)
        with pytest.raises(OSError, match="500") as told:
            visitor.get("/api/1/tracks?report=0")
        assert "4,000,000 rows in" in json.loads(told.value.read())["error"]  # type: ignore[attr-defined]
        peak = next(
            line
            for line in Path(f"/proc/{server.pid}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        )
        assert int(peak.split()[1]) < 400_000


def test_a_trace_is_handed_to_a_perfetto_ui(report: Path) -> None:
    perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    with served("--perfetto-ui", "localhost:10000", report, cwd=report.parent) as server:
        visitor = Visitor(server.url)
        assert 'data-ui="http://localhost:10000"' in visitor.page
        assert "<script>" not in visitor.page
        assert b"postMessage" in visitor.get("/perfetto.js")
        trace = perfetto.Trace()
        trace.ParseFromString(visitor.get("/trace.perfetto-trace"))
        assert len(trace.packet) > 10


@contextmanager
def recording(folder: Path) -> Iterator[subprocess.Popen[str]]:
    (folder / "obedient.py").write_text(OBEDIENT)
    process = subprocess.Popen(
        [*COMMAND, "profile", "--light", "-o", "live", sys.executable, "obedient.py"],
        cwd=folder,
        env=environment(WARPLENS_RUNTIME_DIR=str(folder / "run")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait(60)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def does(process: subprocess.Popen[str], name: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "did\n"


def test_a_running_program_is_followed(tmp_path: Path) -> None:
    with recording(tmp_path) as process:
        does(process, "first")
        env = environment(WARPLENS_RUNTIME_DIR=str(tmp_path / "run"))
        with served("--follow", "live.warplens", cwd=tmp_path, env=env) as server:
            visitor = Visitor(server.url)

            def seen(name: str) -> bool:
                return bool(visitor.get(f"/api/1/search?report=0&text={name}&from=0")["total"])

            assert seen("first")
            meta = visitor.get("/api/1/meta")["reports"][0]
            assert meta["live"]
            does(process, "second")
            until(lambda: seen("second"), "the second range", 300)
            newer = visitor.get(f"/api/1/changed?known={meta['generation']}")
            assert newer > [meta["generation"]]
            assert process.poll() is None, "the program continues"
            assert process.stdin is not None
            process.stdin.close()
            until(
                lambda: not visitor.get("/api/1/meta")["reports"][0]["live"], "the end of the recording", 300
            )
            assert seen("first")
            assert seen("second")
            process.wait(60)
