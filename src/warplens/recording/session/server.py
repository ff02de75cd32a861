"""Answers other terminals on a thread of the launcher: one JSON object a line.

Only for the same user.

It never waits for anybody: slow, silent, too many or too talkative clients lose their connection. What takes long is answered
later, with `Connection.answer`.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

MOST = 64 << 10
_CLIENTS = 32
_PATIENCE_S = 10.0
_LOOK_S = 1.0
_END_S = 2.0
_PEER = struct.Struct("3i")  # struct ucred


class Connection:
    """One client. `answer` may be called from the server's thread only."""

    def __init__(self, peer: socket.socket) -> None:
        self._socket = peer
        self.descriptor = peer.fileno()
        self.waiting = False
        self._input = b""
        self._output = b""
        self._since = time.monotonic()

    def answer(self, content: dict[str, Any]) -> None:
        """Send the answer to the request that was read last.

        Nothing happens where the client has gone.
        """
        self.waiting = False
        self._since = time.monotonic()
        self._output += json.dumps(content).encode() + b"\n"

    @property
    def events(self) -> int:
        """The events to poll for."""
        return (select.POLLOUT if self._output else 0) | (0 if self.waiting else select.POLLIN)

    def too_slow(self, now: float) -> bool:
        """Whether it has neither sent its request nor taken its answer in time."""
        return not self.waiting and now - self._since > _PATIENCE_S

    def read(self) -> bool:
        """Read the available bytes; return False at the end, or if the request is too long."""
        try:
            new = self._socket.recv(4096)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._input += new
        return bool(new) and len(self._input) <= MOST

    def request(self) -> bytes | None:
        """Take the next request, once the one before is answered; None if it is not complete."""
        line, newline, rest = self._input.partition(b"\n")
        if self.waiting or not newline:
            return None
        self._input = rest
        self.waiting = True
        return line

    def write(self) -> bool:
        """Send what can be sent now; False if nothing ever can again."""
        try:
            sent = self._socket.send(self._output, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._output = self._output[sent:]
        return True

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._socket.close()


class Server:
    """Answers from `start` to `stop`, once it has something to `listen_on`.

    `handle` gets each request, an object, and answers it at once or later; `look` is called after requests, and when the time (s)
    is over that it returned last. Both run in the server's thread, which is none of `threading`'s; it inherits the blocked signals
    of the thread that starts it.
    """

    def __init__(
        self, handle: Callable[[dict[str, Any], Connection], None], look: Callable[[], float]
    ) -> None:
        self._listening: socket.socket | None = None
        self._handle = handle
        self._look = look
        self._clients: dict[int, Connection] = {}
        self._calls: deque[Callable[[], None]] = deque()
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._next_look = time.monotonic()
        self._stopping = False
        self._ended = threading.Event()
        self._running = False

    def start(self) -> None:
        """Start the thread; where there can be no more threads, nobody is answered."""
        try:
            _thread.start_new_thread(self._run, ())
            self._running = True  # posting needs the thread
        except RuntimeError:
            pass

    def listen_on(self, listening: socket.socket | None) -> None:
        """Answer on another socket from now on: before `start`, or in the server's thread."""
        self._listening = listening

    def post(self, call: Callable[[], None]) -> bool:
        """Have `call` called in the server's thread, soon; False if that does not run.

        From any thread.
        """
        if not self._running:
            return False
        self._calls.append(call)
        with contextlib.suppress(OSError):
            os.write(self._write_end, b"\0")
        return True

    def stop(self) -> None:
        """End the thread once the answers are sent that are there.

        Wait no longer than two seconds for it.
        """
        if self._running:
            self.post(self._stop)
            self._running = False
            if not self._ended.wait(_END_S):
                return  # it keeps what it uses
        for descriptor in (self._read_end, self._write_end):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _stop(self) -> None:
        self._stopping = True

    def _run(self) -> None:
        try:
            while not self._stopping:
                try:
                    self._turn()
                except Exception:  # whatever it is, the run continues; but not in circles
                    time.sleep(_LOOK_S)
            for client in self._clients.values():
                client.write()
                client.close()
        finally:
            self._ended.set()

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._read_end, select.POLLIN)
        full = len(self._clients) >= _CLIENTS
        if not full and self._listening is not None:
            poll.register(self._listening, select.POLLIN)
        for client in self._clients.values():
            poll.register(client.descriptor, client.events)
        for descriptor, event in poll.poll(max(0.0, min(self._next_look - time.monotonic(), _LOOK_S)) * 1000):
            if descriptor == self._read_end:
                with contextlib.suppress(OSError):
                    os.read(self._read_end, 4096)
            elif descriptor in self._clients:
                self._serve(self._clients[descriptor], event)
            else:
                self._accept()
        while self._calls:
            with contextlib.suppress(Exception):
                self._next_look = time.monotonic()
                self._calls.popleft()()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_S
            self._next_look = time.monotonic() + self._look()
        for client in [client for client in self._clients.values() if client.too_slow(now)]:
            self._drop(client)

    def _accept(self) -> None:
        assert self._listening is not None
        try:
            peer, _ = self._listening.accept()
        except OSError:
            time.sleep(0.05)  # no descriptors left: the listening socket stays ready, so do not spin
            return
        if not same_user(peer):
            peer.close()
            return
        peer.setblocking(False)
        client = Connection(peer)
        self._clients[client.descriptor] = client

    def _serve(self, client: Connection, event: int) -> None:
        if event & select.POLLIN and not client.waiting:
            if not client.read():
                self._drop(client)
                return
            while (line := client.request()) is not None:
                self._request(client, line)
        elif event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
            self._drop(client)
            return
        if client.events & select.POLLOUT and not client.write():
            self._drop(client)

    def _request(self, client: Connection, line: bytes) -> None:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise TypeError("it is not an object")
        except (ValueError, TypeError, RecursionError) as error:
            client.answer({"ok": False, "error": f"Invalid request: {error}."})
            return
        try:
            self._next_look = time.monotonic()
            self._handle(request, client)
        except Exception as error:
            client.answer({"ok": False, "error": f"{type(error).__name__}: {error}"})

    def _drop(self, client: Connection) -> None:
        self._clients.pop(client.descriptor, None)
        client.close()


def same_user(peer: socket.socket) -> bool:
    """Whether the process at the other end runs for the same user, or for root."""
    try:
        _, user, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    except OSError:
        return False
    return user in (os.geteuid(), 0)
