"""Ends connections that begin a request and do not go on: some hundred of them would keep everybody else out."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from warplens.viewer import limits

_UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # the head is not there yet; part of the body is not


class Impatient(H11Protocol):
    """A connection whose requests have to be there within a while, however slowly their bytes drip. Between requests, uvicorn waits."""

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Wait until the request is whole."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state not in _UNFINISHED or self.transport.is_closing():
            self._forget()
        elif self._end is None:
            self._end = self.loop.call_later(limits.REQUEST_S, self.transport.close)

    def _forget(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
