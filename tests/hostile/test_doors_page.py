"""What a page may send to the server that no answer has: it is refused in words, and nobody else waits."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Iterator

import pytest

from tests.support.page.viewing import PICTURE, Client, serving
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.require("native")
HUGE = "9" * 20
VIEWPORT = "report=0&begin=0&end=9&width=9"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = tmp_path_factory.mktemp("view") / "run.warplens"
    timeline(path, PICTURE)
    with serving(path) as found:
        yield found


@pytest.mark.parametrize(
    "question",
    [
        f"viewport?{VIEWPORT}&tracks={HUGE}",
        f"viewport?{VIEWPORT}&tracks=1-{HUGE}",
        f"plots?{VIEWPORT}&tracks={HUGE}",
        f"selected?report=0&begin=0&end=9&tracks={HUGE}",
        f"changed?known={HUGE}",
    ],
)
def test_a_number_without_bounds_is_refused(question: str, client: Client) -> None:
    answer = client.ask(f"/api/1/{question}")
    assert (answer.status, HUGE in answer.json["error"]) == (400, True)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT '\ud800'",
        "SELECT " + "(" * 2000 + "1" + ")" * 2000,
        "SELECT " + "lower(" * 1100 + "''" + ")" * 1100,  # DuckDB takes 1,000
    ],
)
def test_sql_that_is_none_is_refused(text: str, client: Client) -> None:
    answer = client.ask("/api/1/sql", method="POST", body=json.dumps({"report": 0, "text": text}).encode())
    assert answer.status == 400
    assert "went wrong" not in answer.json["error"]


def test_connections_that_ask_nothing_keep_nobody_out(client: Client) -> None:
    """More than the server takes at once, and than it may have files open."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 4_096:
        pytest.skip("both ends of the connections are files of this process")
    silent = [socket.create_connection(("127.0.0.1", client.door.port)) for _ in range(1_200)]
    try:
        for number, connection in enumerate(silent):
            if number % 2:
                connection.send(b"GET / HTTP/1.1\r\nHost: ")
        assert [client.ask("/api/1/meta").status for _ in range(20)] == [200] * 20
        silent[0].settimeout(60)
        assert silent[0].recv(1) == b""  # the oldest was dropped
    finally:
        for connection in silent:
            connection.close()
