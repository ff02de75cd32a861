"""A server of `warplens view` in a thread of the test, and a client that says exactly what the test wants it to say."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplens.flows import foreign
from warplens.flows.viewing import view_of
from warplens.viewer import bundle
from warplens.viewer.server.serving import Door, Server, background, listen

PATIENCE_S = 60.0
# A GPU program with something of everything that has a row.
PICTURE = """
main          |[step                      ][step                      ]  !save
main          |  [load ]                     [load ]
w@io          |     [read         ]
p1/main       |        {async   }
main#t1       |{fetch    }
main~mem      |0   3   1.5   ?
main:api      |(cudaLaunchKernel#1)(cudaMemcpyAsync#2)(cuCtxSynchronize#5 )
gpu0.7        |   (gemm#1   )(HtoD#2 )(memset )(graph#9 )  !3#4
gpu0.8        |                    (gemm#1 )
:sync         |                                       (Context#5 )
main:overhead |(Buffer_flush )
:um           |(HtoD ) (CPU_page_fault )
gpu0:memory   |+4096#5   -4096
gpu0~SM_Active|0    55.5
main:native   |(main;run@libx.so;copy@kernel )
main:state    |(running:1 )(blocked:poll )(runnable )
main:os       |(poll )(read:/data/a<main;load )
main:gil      |(hold  )(wait  )
main:gc       |(2     )
"""


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks a server; `headers` of a request replace what a browser would send, None leaves one out."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.cookie = ""

    def enter(self) -> None:
        """Exchange the token for the cookie."""
        answer = self.ask(f"/?token={self.door.keys.token}")
        assert answer.status == 303, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def ask(
        self, path: str, *, method: str = "GET", body: bytes | None = None, **headers: str | None
    ) -> Answer:
        """Send one request, whatever is in it."""
        given: dict[str, str | None] = {"host": f"127.0.0.1:{self.door.port}", "cookie": self.cookie or None}
        if body is not None:
            given |= {"content-length": str(len(body)), "content-type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.door.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(
                answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()

    def get(self, name: str, **query: Any) -> Any:
        """Ask one thing of the API; it has to succeed."""
        answer = self.api(name, **query)
        assert answer.status == 200, answer
        return answer.json if answer.headers["content-type"] == "application/json" else answer.body

    def api(self, name: str, **query: Any) -> Answer:
        """Ask one thing of the API."""
        from urllib.parse import urlencode

        return self.ask(
            f"/api/1/{name}?{urlencode({key.rstrip('_'): value for key, value in query.items()})}"
        )

    def sql(self, text: str, report: int = 0) -> Answer:
        """Ask in SQL."""
        return self.ask(
            "/api/1/sql", method="POST", body=json.dumps({"report": report, "text": text}).encode()
        )


class Talk:
    """A WebSocket to a server, with the headers that a test wants; `status`: how the handshake ended, 101: it is open."""

    def __init__(
        self, client: Client, path: str = "/api/1/channel", headers: Mapping[str, str | None] | None = None
    ) -> None:
        given: dict[str, str | None] = {
            "host": f"127.0.0.1:{client.door.port}",
            "cookie": client.cookie,
            "upgrade": "websocket",
        }
        given |= {
            "connection": "Upgrade",
            "sec-websocket-key": base64.b64encode(bytes(16)).decode(),
            "sec-websocket-version": "13",
            **(headers or {}),
        }
        self._socket = socket.create_connection(("127.0.0.1", client.door.port), PATIENCE_S)
        lines = [
            f"GET {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in given.items() if value is not None),
            "",
            "",
        ]
        self._socket.sendall("\r\n".join(lines).encode("latin-1"))
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def say(self, message: str | bytes) -> None:
        """Send a message as it is: RFC 6455, masked with zeros."""
        data = message.encode() if isinstance(message, str) else message
        size = struct.pack(">B", 0x80 | len(data)) if len(data) < 126 else struct.pack(">BQ", 0xFF, len(data))
        self._socket.sendall(bytes([0x81 if isinstance(message, str) else 0x82]) + size + bytes(4) + data)

    def message(self) -> bytes | None:
        """Return the next message; None: the server ended the connection."""
        while True:
            head = self._file.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return None
            size = head[1]
            if size > 125:
                (size,) = struct.unpack(
                    ">H" if size == 126 else ">Q", self._file.read(2 if size == 126 else 8)
                )
            data = self._file.read(size)
            if head[0] & 15 == 2:
                return data

    def answer(self) -> tuple[int, int, bytes] | None:
        """Return number, status and body of the next answer."""
        found = self.message()
        return None if found is None else (*struct.unpack("<II", found[:8]), found[8:])

    def ask(self, number: int, question: str) -> tuple[int, int, bytes]:
        """Ask and return the answer, which has to come."""
        self.say(f"{number} {question}")
        found = self.answer()
        assert found is not None, "the server has ended the connection"
        return found


@contextmanager
def serving(*reports: Path) -> Iterator[Client]:
    """Yield a client of a server of these reports, which has the cookie."""
    opened = [foreign.open(path) for path in reports]
    door = listen()
    server = Server(door, view_of(opened), dict(bundle.files()))
    thread = background(server)
    try:
        end = time.monotonic() + PATIENCE_S
        while not server.started:
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.01)
        client = Client(door)
        client.enter()
        yield client
    finally:
        server.stop()
        thread.join(PATIENCE_S)
        for one in server.view.reports:
            one.close()
        for report in opened:
            report.close()
        assert not thread.is_alive()
