"""Ends connections that begin a request and do not continue.

Some hundred of them would keep everybody else out.
"""

from __future__ import annotations

import asyncio
import itertools

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from warplens.viewer import limits

_numbers = itertools.count()
_UNFINISHED = (h11.IDLE, h11.SEND_BODY)  # the head is not there yet; part of the body is not


class SlowRequestGuard(H11Protocol):
    """A connection whose requests have to be there within a while, however slowly their bytes drip.

    Between requests, uvicorn waits.
    """

    _end: asyncio.TimerHandle | None = None
    _number = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request.

        Of many that have made none, the oldest goes: any user of the machine may connect.
        """
        super().connection_made(transport)
        self._number = next(_numbers)
        self._watch()
        silent = [
            other for other in self.connections if isinstance(other, SlowRequestGuard) and other._is_silent()
        ]
        if len(silent) > limits.SILENT:
            min(silent, key=lambda other: other._number).transport.close()

    def _is_silent(self) -> bool:
        return getattr(self, "cycle", None) is None and not self.transport.is_closing()

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
