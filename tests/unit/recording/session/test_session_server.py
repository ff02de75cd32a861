"""The thread that answers, and the client that asks: over real sockets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from warplens.errors import CaptureError, UsageError
from warplens.recording.session import client as asking
from warplens.recording.session import server as serving
from warplens.recording.session.client import ask
from warplens.recording.session.directory import Membership, join
from warplens.recording.session.runtime_dir import OVERRIDE
from warplens.recording.session.server import Connection, Server

SRC = Path(__file__).resolve().parents[4] / "src"
Handler = Callable[[dict[str, Any], Connection], None]


class Session:
    """A session named `serve` whose requests go to `handle`."""

    def __init__(self, handle: Handler) -> None:
        self.member: Membership = join("serve", "x")
        self.looks = 0
        self.server = Server(handle, self._look)
        self.server.listen_on(self.member.socket)
        self.server.start()

    def _look(self) -> float:
        self.looks += 1
        return 60.0

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(self.member.socket.getsockname())
        return connection

    def close(self) -> None:
        self.server.stop()
        self.member.leave()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Handler], Session]]:
    monkeypatch.setenv(OVERRIDE, str(tmp_path / "s"))
    made: list[Session] = []

    def make(handle: Handler) -> Session:
        made.append(Session(handle))
        return made[-1]

    yield make
    for one in made:
        one.close()


def echo(request: dict[str, Any], client: Connection) -> None:
    client.answer({"ok": True, "request": request})


def line_of(connection: socket.socket) -> dict[str, Any]:
    with connection.makefile("rb") as file:
        answer: dict[str, Any] = json.loads(file.readline())
        return answer


def test_a_request_is_answered(session: Callable[[Handler], Session]) -> None:
    session(echo)
    assert ask("serve", {"do": "x", "n": 1}) == {"ok": True, "request": {"do": "x", "n": 1}}
    assert ask(None, {"do": "only one"})["request"] == {"do": "only one"}


def test_many_clients_at_once_and_answers_out_of_order(session: Callable[[Handler], Session]) -> None:
    waiting: list[Connection] = []

    def handle(request: dict[str, Any], client: Connection) -> None:
        if request["do"] == "wait":
            waiting.append(client)
        else:
            client.answer({"ok": True, "waiting": len(waiting)})

    one = session(handle)
    answers: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(ask("serve", {"do": "wait"}, timeout=None)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    while ask("serve", {"do": "count"})["waiting"] < 8:
        pass

    def release() -> None:
        for client in waiting:
            client.answer({"ok": True})

    one.server.post(release)
    for thread in threads:
        thread.join(20)
    assert answers == [{"ok": True}] * 8


def test_two_requests_in_one_connection(session: Callable[[Handler], Session]) -> None:
    one = session(echo)
    with one.connect() as connection:
        connection.sendall(b'{"a": 1}\n{"a": 2}\n')
        with connection.makefile("rb") as file:
            assert [json.loads(file.readline())["request"] for _ in range(2)] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("line", [b"no json", b"[1]", b"\xff\xfe", b"[" * 50_000, b"", b"null"])
def test_nonsense_is_answered_in_words(session: Callable[[Handler], Session], line: bytes) -> None:
    one = session(echo)
    with one.connect() as connection:
        connection.sendall(line + b"\n")
        answer = line_of(connection)
    assert not answer["ok"]
    assert "Invalid request" in answer["error"]
    assert ask("serve", {"do": "x"})["ok"]


def test_a_request_without_end_loses_its_connection(session: Callable[[Handler], Session]) -> None:
    one = session(echo)
    with one.connect() as connection, pytest.raises((BrokenPipeError, ConnectionResetError)):
        connection.sendall(bytes(10_000_000))
    assert ask("serve", {"do": "x"})["ok"]


def test_a_silent_client_loses_its_connection(
    session: Callable[[Handler], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_PATIENCE_S", 0.05)
    one = session(echo)
    with one.connect() as connection:
        assert connection.recv(1) == b""


def test_clients_beyond_the_limit_wait_their_turn(
    session: Callable[[Handler], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_CLIENTS", 2)
    one = session(echo)
    first, second, third = one.connect(), one.connect(), one.connect()
    third.sendall(b"{}\n")
    for connection in (first, second):
        connection.close()
    assert line_of(third)["ok"]
    third.close()


def test_a_client_that_has_gone_harms_nobody(session: Callable[[Handler], Session]) -> None:
    late: list[Connection] = []
    one = session(
        lambda request, client: (
            late.append(client) if request["do"] == "wait" else client.answer({"ok": True, "n": len(late)})
        )
    )
    with one.connect() as connection:
        connection.sendall(b'{"do": "wait"}\n')
        while not ask("serve", {"do": "x"})["n"]:
            pass
    one.server.post(lambda: late[0].answer({"ok": True, "text": "x" * 500_000}))
    assert ask("serve", {"do": "x"})["ok"]


def test_an_error_of_ours_is_an_answer(session: Callable[[Handler], Session]) -> None:
    def broken(request: dict[str, Any], client: Connection) -> None:
        raise ZeroDivisionError("by nothing")

    session(broken)
    with pytest.raises(CaptureError, match="Session serve: ZeroDivisionError: by nothing"):
        ask("serve", {"do": "x"})


def test_an_answer_that_fails_later_ends_nothing(session: Callable[[Handler], Session]) -> None:
    one = session(echo)

    def fail() -> None:
        raise ZeroDivisionError

    one.server.post(fail)
    assert ask("serve", {"do": "x"})["ok"]


def test_waiting_clients_hear_of_the_end(session: Callable[[Handler], Session]) -> None:
    received = threading.Event()
    one = session(lambda request, client: received.set())
    errors: list[str] = []

    def client() -> None:
        try:
            ask("serve", {"do": "x"}, timeout=None)
        except CaptureError as error:
            errors.append(str(error))

    thread = threading.Thread(target=client)
    thread.start()
    assert received.wait(20)
    one.close()
    thread.join(20)
    assert errors
    assert "Session serve has ended." in errors[0]


def test_no_answer_in_time_is_told(session: Callable[[Handler], Session]) -> None:
    session(lambda request, client: None)
    with pytest.raises(CaptureError, match=rf"\(process {os.getpid()}\) has not answered"):
        ask("serve", {"do": "x"}, timeout=0.0)


def test_an_answer_without_end_is_not_read_for_ever(session: Callable[[Handler], Session]) -> None:
    session(lambda request, client: client.answer({"ok": True, "text": "x" * (2 << 20)}))
    with pytest.raises(CaptureError, match="an invalid answer"):
        ask("serve", {"do": "x"})


def test_an_ambiguous_session_is_refused(session: Callable[[Handler], Session]) -> None:
    with pytest.raises(UsageError, match="No session runs"):
        ask(None, {"do": "x"})
    session(echo)
    other = join("other", "x")
    with pytest.raises(UsageError, match=r"2 sessions run(.|\n)*other(.|\n)*serve"):
        ask(None, {"do": "x"})
    with pytest.raises(UsageError, match=r"no session 'srve'(.|\n)*serve"):
        ask("srve", {"do": "x"})
    other.leave()


def test_a_suspended_launcher_is_told_at_once(
    session: Callable[[Handler], Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    session(echo)
    monkeypatch.setattr(asking, "suspended", lambda note: True)
    with pytest.raises(CaptureError, match=r"suspended(.|\n)*kill -CONT"):
        ask("serve", {"do": "x"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_other_users_are_not_heard(session: Callable[[Handler], Session], tmp_path: Path) -> None:
    handled: list[dict[str, Any]] = []
    one = session(lambda request, client: handled.append(request))
    code = """
        import os, socket, sys
        connection = socket.socket(socket.AF_UNIX)
        os.fchdir(int(sys.argv[1]))
        os.setgid(12345); os.setgroups([]); os.setuid(12345)
        try:
            connection.connect("serve.sock")
        except PermissionError:
            os._exit(3)
        connection.settimeout(20)
        try:
            connection.sendall(b'{"do": "stop"}\\n')
            os._exit(0 if connection.recv(1) == b"" else 1)
        except OSError:
            os._exit(0)
    """
    folder = tmp_path / "s"
    descriptor = os.open(folder, os.O_RDONLY)
    command = [sys.executable, "-c", textwrap.dedent(code), str(descriptor)]
    assert subprocess.run(command, pass_fds=(descriptor,), timeout=30).returncode == 3
    folder.chmod(0o755)  # even if somebody opened it
    (folder / "serve.sock").chmod(0o666)
    assert subprocess.run(command, pass_fds=(descriptor,), timeout=30).returncode == 0
    os.close(descriptor)
    folder.chmod(0o700)
    assert handled == []
    assert one.server.post(lambda: None)
