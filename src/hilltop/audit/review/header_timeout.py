"""A timeout for request headers: silent connections do not use up those that reviewers need."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

FIRST_REQUEST_S = 10.0
"""How long a connection may take to send the head of a request, its first one or a later one."""


class HeaderTimeout(H11Protocol):
    """Closes a connection whose request does not come, or not to the end of its head.

    Anybody on the machine can connect without a token. The number of connections is bounded, so
    those that stay silent would lock all others out. Between requests uvicorn itself waits, but
    stops with the first byte of the next one.
    """

    waiting: asyncio.TimerHandle | None = None
    """What gives up after a time; None while a request is answered, and between requests."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request of which a part has come."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self.waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection if it has no whole request."""
        self.waiting = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()

    def _wait(self) -> None:
        self.waiting = self.loop.call_later(FIRST_REQUEST_S, self.give_up)

    def _stop_waiting(self) -> None:
        if self.waiting is not None:
            self.waiting.cancel()
            self.waiting = None
