"""Runs the server: its own port, the guard in front, until it is interrupted."""

from __future__ import annotations

import getpass
import socket
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warplens.errors import UsageError
from warplens.viewer import limits
from warplens.viewer.server.guard import Guard, Keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from warplens.viewer.answers.answers import View
    from warplens.viewer.bundle import File
    from warplens.viewer.server.app import News

LOCAL = "127.0.0.1"
_LOCALS = frozenset((LOCAL, "localhost", "::1"))
_BACKLOG = 512
_AT_ONCE = 1_000  # connections


@dataclass
class Door:
    """A port that listens, before anything is there to answer; `keys` open it."""

    listening: socket.socket
    host: str
    port: int
    keys: Keys

    @property
    def address(self) -> str:
        """The address for a browser on this machine, or, where it listens to others, for one of another."""
        name = self.host
        if name in ("0.0.0.0", "::"):
            name = socket.gethostname()
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/?token={self.keys.token}"

    @property
    def once(self) -> str:
        """The same with a token that works once: other users see what a browser is started with."""
        return self.address.replace(self.keys.token, self.keys.once())

    @property
    def remote(self) -> bool:
        """Whether it listens to other machines."""
        return self.host not in _LOCALS

    @property
    def forward(self) -> str:
        """The command that makes this address open in a browser on another machine."""
        return f"ssh -N -L {self.port}:{LOCAL}:{self.port} {_user()}@{socket.gethostname()}"


def listen(host: str = LOCAL, port: int = 0, *, allow_remote: bool = False) -> Door:
    """Begin to listen on a port, 0: a free one.

    Raises UsageError if that is not allowed or not possible.
    """
    if host not in _LOCALS and not allow_remote:
        raise UsageError(
            f"--host {host} accepts connections from other machines: add --allow-remote, or keep the "
            "default and forward the port with ssh.\n"
            "Anyone with the address and its token can then read the report; the connection is not encrypted."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Connections inherit it. asyncio sets it only where the protocol is named, and without it an answer's body waits
        # 40 ms for the browser to acknowledge its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {host}, port {port}: {reason}.\nWithout --port, warplens chooses a free one."
        ) from error
    number = int(listening.getsockname()[1])
    return Door(listening, host, number, keys=Keys(number))


class Server:
    """Serves a view behind a door. `run` returns when it is interrupted, or after `stop`.

    `ahead`: whether the rows are made at once; they are there before the browser is, mostly.
    """

    def __init__(
        self, door: Door, view: View, pages: Mapping[str, File | Path], *, ahead: bool = True
    ) -> None:
        # Taken together, these take a fifth of a second to load: the address is printed before.
        import uvicorn

        from warplens.viewer.answers.answers import Answers
        from warplens.viewer.server.app import News, Site
        from warplens.viewer.server.slow_requests import SlowRequestGuard
        from warplens.viewer.server.workers import Workers

        self.view, self._ahead = view, ahead
        self._answers = answers = Answers(view)
        self.workers = Workers()
        self.news: News = News(answers)
        self._door = door
        names = () if not door.remote else (socket.gethostname(), socket.getfqdn(), door.host)
        site = Site(answers, self.workers, pages, news=self.news)
        self._subprocess = site.subprocess
        for opened in view.reports:
            opened.grown, opened.projector = self.news.tell, self._subprocess.project
        app = Guard(site.app(), door.keys, names, remote=door.remote)
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http=SlowRequestGuard,
            ws="wsproto",
            ws_max_size=limits.BODY,
            ws_per_message_deflate=False,  # what is sent stays on this machine, or goes through ssh
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=_AT_ONCE,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until Ctrl-C or SIGTERM; in the main thread, else until `stop`."""
        if self._ahead:
            self.workers.begin(lambda: [opened.tree for opened in self.view.reports])
        try:
            self._server.run(sockets=[self._door.listening])
        except KeyboardInterrupt:
            pass
        finally:
            self._subprocess.close()
            self._answers.close()
            self.workers.close()
            self._door.listening.close()

    def stop(self) -> None:
        """End `run`, soon; from any thread."""
        self._server.should_exit = True

    @property
    def busy(self) -> bool:
        """Whether threads compute slow answers.

        They cannot be interrupted, and Python ends badly under them.
        """
        return self.workers.busy or any(opened.growing for opened in self.view.reports)

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return bool(self._server.started)


def background(server: Server) -> threading.Thread:
    """Run a server in a separate thread: for tests and notebooks."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    return thread


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "USER"
