"""Who may ask the server of `warplens view`, what it refuses, and that it holds under many and hostile requests."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.page.viewing import PATIENCE_S, PICTURE, Client, serving
from tests.support.thorough import few
from warplens.testing.timeline import timeline
from warplens.viewer import limits
from warplens.viewer.answers import projecting
from warplens.viewer.server import subprocess_worker

pytestmark = pytest.mark.require("native")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = tmp_path_factory.mktemp("view") / "run.warplens"
    timeline(path, PICTURE)
    with serving(path) as found:
        yield found


def stranger(client: Client) -> Client:
    return Client(client.door)


API = (
    "meta",
    "tracks?report=0",
    "viewport?report=0&begin=0&end=9&width=9&tracks=0",
    "findings?report=0",
    "changed?known=1",
)


@pytest.mark.parametrize("path", ["/", "/assets/x.js", *(f"/api/1/{one}" for one in API)])
@pytest.mark.parametrize("token", ["", "wrong", "é", "x" * 5000])
def test_without_the_token_nothing_is_answered(client: Client, path: str, token: str) -> None:
    from urllib.parse import quote

    address = f"{path}{'&' if '?' in path else '?'}token={quote(token)}" if token else path
    answer = stranger(client).ask(address)
    assert answer.status == 401
    assert set(answer.json) == {"error", "hint"}
    assert "set-cookie" not in answer.headers


def test_the_token_is_exchanged_for_a_cookie_that_scripts_cannot_read(client: Client) -> None:
    answer = stranger(client).ask(f"/?token={client.door.keys.token}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert name.startswith(f"warplens-{client.door.port}=")
    assert client.door.keys.token not in name
    assert set(attributes) == {"HttpOnly", "SameSite=Strict", "Path=/"}


def test_the_token_opens_the_page_alone(client: Client) -> None:
    answer = stranger(client).ask(f"/api/1/meta?token={client.door.keys.token}")
    assert answer.status == 401


def test_a_token_for_a_browser_works_once(client: Client) -> None:
    path = client.door.once.partition(str(client.door.port))[2]
    assert stranger(client).ask(path).status == 303
    assert stranger(client).ask(path).status == 401


def test_a_link_of_another_page_with_the_token_gets_in_without_a_redirect(client: Client) -> None:
    answer = stranger(client).ask(f"/?token={client.door.keys.token}", sec_fetch_site="cross-site")
    assert answer.status == 200
    assert "set-cookie" in answer.headers
    assert b'http-equiv="refresh"' in answer.body


def test_tools_say_the_token_in_a_header(client: Client) -> None:
    assert stranger(client).ask("/api/1/meta", authorization=f"Bearer {client.door.keys.token}").status == 200
    for wrong in ("Bearer nonsense", "Bearer ", f"Basic {client.door.keys.token}", "é"):
        assert (
            stranger(client).ask("/api/1/meta", authorization=wrong.encode().decode("latin-1")).status == 401
        )


@pytest.mark.parametrize(
    "cookie", ["warplens=1", "warplens-{port}=", "warplens-{port}={token}", "a=b; ;;=;{", "x" * 4000]
)
def test_a_wrong_cookie_is_no_cookie(client: Client, cookie: str) -> None:
    given = cookie.replace("{port}", str(client.door.port)).replace("{token}", client.door.keys.token)
    assert stranger(client).ask("/api/1/meta", cookie=given).status == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "",
        "[::1",
        "127.0.0.1:x",
        "@127.0.0.1",
    ],
)
def test_another_name_is_not_ours(client: Client, host: str) -> None:
    """DNS rebinding: a page of somebody else makes its name mean this machine."""
    answer = client.ask("/api/1/meta", host=host)
    assert answer.status == 403
    assert client.ask(f"/?token={client.door.keys.token}", host=host).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1", "localhost:8080", "[::1]:99"])
def test_any_port_of_this_machine_is_ours(client: Client, host: str) -> None:
    """Ssh forwards any port to ours."""
    assert client.ask("/api/1/meta", host=host).status == 200


def test_a_host_that_is_missing_or_there_twice_is_refused(client: Client) -> None:
    assert client.ask("/api/1/meta", host=None).status in (400, 403)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "file://"]
)
def test_other_pages_may_not_ask(client: Client, origin: str) -> None:
    given = origin.replace("{port}", str(client.door.port))
    assert client.ask("/api/1/meta", origin=given).status == 403
    assert (
        client.ask(
            "/api/1/sql", method="POST", body=b'{"report": 0, "text": "SELECT 1"}', origin=given
        ).status
        == 403
    )


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_from_another_site_is_refused(client: Client, site: str) -> None:
    assert client.ask("/api/1/meta", sec_fetch_site=site).status == 403


def test_our_own_page_may_ask(client: Client) -> None:
    own = f"http://127.0.0.1:{client.door.port}"
    assert client.ask("/api/1/meta", origin=own, sec_fetch_site="same-origin").status == 200


def test_every_answer_has_the_headers_of_a_careful_server(client: Client) -> None:
    for one in (
        client.ask("/"),
        client.ask("/api/1/meta"),
        client.ask("/nothing"),
        stranger(client).ask("/"),
        client.ask("/", host="evil"),
    ):
        policy = one.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "no-referrer"
        assert one.headers["x-frame-options"] == "DENY"
        assert one.headers["cache-control"] == "no-store"
        assert "server" not in one.headers


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../etc/passwd",
        "/assets/../../answers.py",
        "/..%2f..%2fanswers.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/assets/%00",
        "/assets/..\\..\\answers.py",
        "/_bundle/index.html",
        "/answers.py",
        "/api/1/stat/..%2f..%2fmeta",
        "/api/1/stat/%2e%2e",
        "/api/1/../../etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_page(client: Client, path: str) -> None:
    answer = client.ask(path)
    assert answer.status in (400, 404)
    assert b"root:" not in answer.body
    assert b"import" not in answer.body


@pytest.mark.parametrize(
    "text",
    [
        "COPY kernels TO '{folder}/copy'",
        "COPY (SELECT 1) TO '{folder}/copy' (FORMAT csv)",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "PRAGMA database_list",
        "SET memory_limit = '1TB'",
        "CREATE TABLE x AS SELECT 1",
        "DROP VIEW kernels",
        "DELETE FROM kernels",
        "INSERT INTO kernels SELECT * FROM kernels",
        "UPDATE kernels SET start = 0",
        "CALL pragma_version()",
        "EXPORT DATABASE '{folder}/all'",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY kernels TO '{folder}/copy'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/*')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_parquet('http://127.0.0.1/x')",
        "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
        "SELECT (SELECT content FROM read_text('/etc/passwd'))",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM information_schema.schemata",
        "SELECT * FROM x.information_schema.tables",
        "SELECT * FROM pg_catalog.pg_tables",
        "EXPLAIN ANALYZE SELECT 1",
        "nonsense",
        "",
    ],
)
def test_sql_reads_the_report_and_nothing_else(client: Client, text: str, tmp_path: Path) -> None:
    answer = client.sql(text.replace("{folder}", str(tmp_path)))
    assert answer.status == 400, answer.body
    assert answer.json["error"]
    assert not list(tmp_path.iterdir())


def test_a_question_in_sql_is_answered_with_its_places(client: Client) -> None:
    answer = client.sql('SELECT id, name, start, "end" FROM kernels ORDER BY start').json
    assert [column["name"] for column in answer["columns"]] == ["id", "name", "start", "end"]
    assert [row[1] for row in answer["rows"]] == ["gemm", "gemm"]
    assert [link["table"] for link in answer["links"]] == ["kernels", "kernels"]
    assert answer["links"][0]["start"] == answer["rows"][0][2] == 3000


def test_sql_can_ask_which_columns_there_are(client: Client) -> None:
    answer = client.sql(
        "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY ALL"
    ).json
    assert ["kernels", "name", "VARCHAR"] in answer["rows"]
    assert {"processes", "nvtx_ranges", "samples"} <= {row[0] for row in answer["rows"]}


def test_long_answers_are_cut_and_say_so(client: Client) -> None:
    answer = client.sql("SELECT range AS n FROM range(50000)").json
    assert (len(answer["rows"]), answer["cut"]) == (10_000, True)
    longest = client.sql("SELECT 'x' || repeat('y', 100000) AS t").json["rows"][0][0]
    assert len(longest) == 4096


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'"x"', b'{"report": 0}', b'{"report": "0", "text": 1}', b"\xff" * 10, b"[" * 60000],
)
def test_a_broken_body_is_told(client: Client, body: bytes) -> None:
    assert client.ask("/api/1/sql", method="POST", body=body).status == 400


def test_forms_of_other_pages_cannot_ask_in_sql(client: Client) -> None:
    body = b'{"report": 0, "text": "SELECT 1"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.ask("/api/1/sql", method="POST", body=body, content_type=kind).status == 400


def test_long_bodies_are_refused_however_they_come(client: Client) -> None:
    body = json.dumps({"report": 0, "text": "SELECT 1" + " " * 70_000}).encode()
    assert client.ask("/api/1/sql", method="POST", body=body).status == 413
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    answer = client.ask(
        "/api/1/sql", method="POST", body=chunked, content_length=None, transfer_encoding="chunked"
    )
    assert answer.status == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    assert client.ask("/api/1/meta", method=method).status in (400, 405)


@pytest.mark.parametrize(
    "path",
    [
        "viewport?report=0",
        "viewport?report=9&begin=0&end=1&tracks=0",
        "viewport?report=0&begin=nan&end=1&tracks=0",
        "viewport?report=0&begin=0&end=inf&tracks=0",
        "viewport?report=0&begin=1&end=0&tracks=0",
        "viewport?report=0&begin=0&end=1e300&tracks=0",
        "viewport?report=0&begin=0&end=1&tracks=0-99999999999",
        "viewport?report=0&begin=0&end=1&tracks=x",
        "viewport?report=0&begin=0&end=1&tracks=1--2",
        "viewport?report=-1&begin=0&end=1&tracks=1",
        "tracks?report=0x0",
        "tracks?report=99999999999999999999999",
        "event?report=0&table=kernels&process=0",
        "event?report=0&table=kernels&process=99999999999&row=99999999999",
        "event?report=0&table=nothing&process=0&row=0",
        "event?report=0&table=x%27%3BDROP%20TABLE%20kernels&process=0&row=0",
        "search?report=0&text=%5B&regex=1&from=0",
        "stat/nothing?report=0",
        "flame?report=0&kind=nothing",
        "at?report=0&table=nothing&time=x",
        "nothing",
        "",
    ],
)
def test_odd_questions_get_an_error_in_words(client: Client, path: str) -> None:
    answer = client.ask(f"/api/1/{path}")
    assert answer.status in (400, 404)
    assert answer.json["error"]


def test_two_hundred_clients_at_once_are_all_answered(client: Client) -> None:
    begun = threading.Barrier(200)

    def one(number: int) -> tuple[int, int]:
        begun.wait(60)
        own = Client(client.door)
        own.cookie = client.cookie
        first = own.api("viewport", report=0, begin=0, end=60_000, width=400, tracks="0-30", limit=1000)
        second = own.api(("meta", "tracks", "findings", "stat-list")[number % 4], report=0)
        return first.status, second.status

    with ThreadPoolExecutor(200) as pool:
        found = set(pool.map(one, range(200)))
    assert found == {(200, 200)}


SQL = (
    "POST /api/1/sql HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: COOKIE\r\ncontent-type: "
    "application/json\r\ncontent-length: 9\r\n\r\n{"
)


@pytest.mark.parametrize("said", ["", "GET / HT", SQL])
def test_an_unfinished_request_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    timeline(tmp_path / "run.warplens", PICTURE)
    with serving(tmp_path / "run.warplens") as own:
        monkeypatch.setattr(limits, "REQUEST_S", 0.2)
        with socket.create_connection(("127.0.0.1", own.door.port), PATIENCE_S) as slow:
            slow.sendall(said.replace("COOKIE", own.cookie).encode())
            with contextlib.suppress(ConnectionResetError):
                while slow.recv(1 << 16):
                    pass


def test_silent_connections_keep_nobody_out(client: Client) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(200):
            silent = stack.enter_context(
                socket.create_connection(("127.0.0.1", client.door.port), PATIENCE_S)
            )
            silent.sendall(b"GET / HTTP/1.1\r\nhost:"[: number % 23])
        for _ in range(5):
            assert (
                client.api("viewport", report=0, begin=0, end=60_000, width=400, tracks="0-30").status == 200
            )


def test_a_report_that_is_removed_or_replaced_meanwhile_is_told(tmp_path: Path) -> None:
    """What is open stays open; what is read again is told, or read anew."""
    path = tmp_path / "run.warplens"
    timeline(path, PICTURE)
    viewport = {"report": 0, "begin": 0, "end": 60_000, "width": 400, "tracks": "0-30"}
    with serving(path) as own:
        before = own.get("viewport", **viewport)
        shutil.rmtree(path)
        assert own.get("viewport", **viewport) == before
        for name in ("findings", "stat/nvtx_sum"):
            gone = own.api(name, report=0)
            assert gone.status == 500
            assert "cannot read" in gone.json["error"]
            assert gone.json["hint"] == "If the report was moved or removed, open it again."
        timeline(path, PICTURE, tick_ns=3_000)
        assert own.get("viewport", **viewport) == before
        assert own.get("stat/nvtx_pushpop_sum", report=0)["rows"]
        assert own.get("meta")["reports"]


def test_many_long_questions_are_refused_in_words_and_viewports_go_on(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SQL_S", 2.0)
    slow = "SELECT count(*) FROM range(100000000000) a, range(1000000) b"
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(client.sql, slow) for _ in range(4)]
        for _ in range(5):
            assert (
                client.api("viewport", report=0, begin=0, end=60_000, width=400, tracks="0-30").status == 200
            )
        answers = [one.result() for one in asked]
    assert {one.status for one in answers} == {400}
    assert all("longer than 2 s" in one.json["error"] for one in answers)


@pytest.mark.parametrize(
    "path",
    [
        "alike?report=0&table=kernels&process=0&row=0",
        *few(
            [
                "steps?report=0",
                "findings?report=0",
                "stat/nvtx_sum?report=0",
                "flame?report=0&kind=kernels&begin=0&end=9000",
            ]
        ),
    ],
)
def test_a_large_report_is_asked_in_a_process_of_its_own(
    client: Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    here = client.ask(f"/api/1/{path}")
    monkeypatch.setattr("warplens.storage.manifest.INDEXED", 0)
    there = client.ask(f"/api/1/{path}&again=1")
    assert here.status == there.status == 200
    assert here.json == there.json


def test_two_large_reports_are_compared_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline(tmp_path / "one.warplens", PICTURE)
    timeline(tmp_path / "other.warplens", PICTURE, tick_ns=2_000)
    with serving(tmp_path / "one.warplens", tmp_path / "other.warplens") as own:
        here = own.get("difference")
        monkeypatch.setattr("warplens.storage.manifest.INDEXED", 0)
        assert own.get("difference", again=1) == here
        assert here["tables"]
        monkeypatch.setattr(subprocess_worker, "__name__", "warplens.there_is_no_such_module")
        assert own.api("difference", again=2).status == 400


def test_errors_of_the_worker_process_are_answered(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warplens.storage.manifest.INDEXED", 0)
    assert client.api("flame", report=0, kind="python").status == 404
    assert client.api("stat/nothing", report=0).status == 400
    monkeypatch.setattr(subprocess_worker, "__name__", "warplens.there_is_no_such_module")
    failed = client.api("stat/nvtx_pushpop_sum", report=0)
    assert failed.status == 400
    assert "without an answer" in failed.json["error"]


def projected(client: Client) -> list[str]:
    """Wait until nothing is computed any more; return the layers of all rows."""
    known = "1"
    while client.get("meta")["reports"][0]["growing"]:
        known = ",".join(map(str, client.get("changed", known=known)))
    nodes = client.get("tracks", report=0)
    layers = []
    while nodes:
        node = nodes.pop()
        nodes += node["children"]
        layers += [node["track"]["layer"]] if "track" in node else []
    return layers


def test_ranges_on_the_gpu_of_a_large_report_come_later_from_a_process_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline(tmp_path / "run.warplens", PICTURE)
    monkeypatch.setattr(projecting, "takes_long", lambda report: True)
    monkeypatch.setattr(projecting, "made", lambda report, cache: pytest.fail("this process computes them"))
    with serving(tmp_path / "run.warplens") as own:
        own.get("tracks", report=0)
        assert projecting.LAYER in projected(own)
        assert own.get("meta")["reports"][0]["generation"] == 2


def test_a_report_is_shown_without_them_where_that_process_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    timeline(tmp_path / "run.warplens", PICTURE)
    monkeypatch.setattr(projecting, "takes_long", lambda report: True)
    monkeypatch.setattr(subprocess_worker, "__name__", "warplens.there_is_no_such_module")
    with serving(tmp_path / "run.warplens") as own:
        own.get("tracks", report=0)
        layers = projected(own)
    assert "kernels" in layers
    assert projecting.LAYER not in layers
    assert "NVTX ranges on the GPU are not shown" in caplog.text
