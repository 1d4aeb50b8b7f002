"""Connections that ask for nothing do not keep a place that a reviewer needs."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

FIRST_REQUEST_S = 10.0
"""How long a connection may take to send its first request, head and all."""


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose first request does not come.

    Anybody on the machine can connect without a token. The number of connections is bounded, so
    those that stay silent would lock all others out.
    """

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._waiting = self.loop.call_later(FIRST_REQUEST_S, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._waiting.cancel()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection if it never had a request."""
        if self.cycle is None:
            self.transport.close()
