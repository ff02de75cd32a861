"""Quick requests over one WebSocket.

A browser has such an answer milliseconds sooner than over HTTP.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.websockets import WebSocketDisconnect

from warplens.viewer import limits

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.websockets import WebSocket

_HEAD = struct.Struct("<II")
_AT_ONCE = 8  # questions of one page; the next are read when one of them has its answer
_NUMBER = (1 << 32) - 1
_WRONG = 1003  # "unsupported data", RFC 6455

Ask = Callable[[str, dict[str, str]], Awaitable["Response"]]


class Channel:
    """Answers requests on the socket.

    A question is the text `NUMBER NAME?QUERY`, its answer one message: u32 number, u32 status, and
    the body of the answer.
    """

    def __init__(self, ask: Ask) -> None:
        """`ask` answers by name and parameters, and raises nothing."""
        self._ask = ask

    async def serve(self, socket: WebSocket) -> None:
        """Answer the questions of one page until it leaves; what is no question ends it."""
        await socket.accept()
        free = asyncio.Semaphore(_AT_ONCE)
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                await free.acquire()
                number, _, question = (await socket.receive_text()).partition(" ")
                if (
                    not (number.isascii() and number.isdecimal() and int(number) <= _NUMBER and question)
                    or len(question) > limits.BODY
                ):
                    await socket.close(_WRONG)
                    return
                task = asyncio.create_task(self._answer(socket, int(number), question))
                running.add(task)
                task.add_done_callback(running.discard)
                task.add_done_callback(lambda _: free.release())
        except (WebSocketDisconnect, KeyError, RuntimeError):
            pass  # it left, sent bytes instead of text, or an answer found it gone
        finally:
            for task in running:
                task.cancel()

    async def _answer(self, socket: WebSocket, number: int, question: str) -> None:
        name, _, query = question.partition("?")
        response = await self._ask(name, dict(parse_qsl(query, keep_blank_values=True)))
        try:
            await socket.send_bytes(_HEAD.pack(number, response.status_code) + bytes(response.body))
        except (WebSocketDisconnect, RuntimeError):
            pass  # nobody waits any more
