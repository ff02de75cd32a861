"""The WebSocket of `warplens view`: the answers of requests, to our own page alone, however it is asked."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import pytest

from tests.support.page.viewing import PICTURE, Client, Talk, serving
from warplens.testing.timeline import timeline
from warplens.viewer import limits

pytestmark = pytest.mark.require("native")
VIEWPORT = "viewport?report=0&begin=0&end=1e6&width=800&tracks=0-9&limit=100&generation=1"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = tmp_path_factory.mktemp("view") / "run.warplens"
    timeline(path, PICTURE)
    with serving(path) as found:
        yield found


@pytest.mark.parametrize(
    "question",
    [
        "meta",
        "tracks?report=0",
        VIEWPORT,
        "plots?report=0&begin=0&end=9&width=9&tracks=",
        "stat-list?report=0",
    ],
)
def test_the_channel_answers_like_a_request(client: Client, question: str) -> None:
    with Talk(client) as talk:
        assert talk.status == 101
        assert talk.ask(7, question) == (7, 200, client.ask(f"/api/1/{question}").body)


@pytest.mark.parametrize(
    "question",
    [
        "viewport?report=0",
        "viewport?report=9&begin=0&end=1&tracks=1",
        "nothing",
        "stat/x",
        "findings?report=0",
    ],
)
def test_a_wrong_question_gets_an_error_and_the_next_an_answer(client: Client, question: str) -> None:
    with Talk(client) as talk:
        number, status, body = talk.ask((1 << 32) - 1, question)
        assert (number, status) == ((1 << 32) - 1, 400 if question == "viewport?report=0" else 404)
        assert json.loads(body)["error"]
        assert talk.ask(1, "meta")[:2] == (1, 200)


def test_many_questions_at_once_are_each_answered_once(client: Client) -> None:
    with Talk(client) as talk:
        for number in range(500):
            talk.say(f"{number} {VIEWPORT if number % 2 else 'meta'}")
        answers = [found for found in (talk.answer() for _ in range(500)) if found is not None]
    assert sorted(number for number, _, _ in answers) == list(range(500))
    assert {status for _, status, _ in answers} == {200}
    assert {len(body) for number, _, body in answers if number % 2} == {
        len(client.ask(f"/api/1/{VIEWPORT}").body)
    }


@pytest.mark.parametrize(
    "text", ["", "meta", "x meta", "-1 meta", "5", "5 ", f"{1 << 32} meta", "٣ meta", "1" * 30 + " meta"]
)
def test_a_malformed_message_closes_the_channel(client: Client, text: str) -> None:
    with Talk(client) as talk:
        talk.say(text)
        assert talk.answer() is None
    assert client.ask("/api/1/meta").status == 200


def test_bytes_and_long_messages_end_it(client: Client) -> None:
    for data in (b"1 meta", "1 meta?" + "x" * (limits.BODY + 1)):
        with Talk(client) as talk:
            talk.say(data)
            assert talk.answer() is None
    assert client.ask("/api/1/meta").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": None},
        {"cookie": "warplens=1"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"host": "evil.example"},
        {"sec-fetch-site": "cross-site"},
    ],
    ids=str,
)
def test_others_are_not_let_in(client: Client, headers: dict[str, str | None]) -> None:
    with Talk(client, headers=headers) as talk:
        assert talk.status == 403


def test_our_own_page_is_let_in_by_its_origin(client: Client) -> None:
    with Talk(client, headers={"origin": f"http://127.0.0.1:{client.door.port}"}) as talk:
        assert talk.ask(3, "meta")[:2] == (3, 200)


def test_the_channel_has_one_address(client: Client) -> None:
    with Talk(client, path="/api/1/meta") as talk:
        assert talk.status == 403


def test_a_client_that_leaves_costs_nothing(client: Client) -> None:
    for _ in range(20):
        with Talk(client) as talk:
            for number in range(50):
                talk.say(f"{number} {VIEWPORT}")
    assert client.ask("/api/1/meta").status == 200


def test_answers_have_a_head_of_eight_bytes(client: Client) -> None:
    """As `web/src/data/aside.worker.ts` cuts it off."""
    with Talk(client) as talk:
        talk.say("258 meta")
        message = talk.message()
    assert message is not None
    assert message[:8] == struct.pack("<II", 258, 200)
