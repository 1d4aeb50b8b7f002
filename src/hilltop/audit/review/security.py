"""Who may talk to the review server: Host, Origin and token are checked before anything else.

The dangers are other pages in the same browser (they can send requests to 127.0.0.1, and rename
their own host to it), other users of this machine and, beyond it, everyone on the network.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from hilltop.errors import ArgumentError

SHORTEST_TOKEN = 16
SESSION = "hilltop_session"
"""Under which a request's scope holds the session of the browser that sent it."""
_COOKIE_S = 30 * 24 * 3600
_MOST_NAMES = 50
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be reached from this machine."""
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


@dataclass(frozen=True)
class Access:
    """Whom the server lets in.

    Attributes:
        host: What the server is bound to.
        token: What a browser has to bring along once.
        cookie: Name of the cookie that stands for the token from then on.
    """

    host: str
    token: str = field(repr=False)
    cookie: str = "hilltop_review"

    def host_allowed(self, header: str) -> bool:
        """Whether a Host header names this server.

        An address is always the server's own. A name might be anyone's who lets it point here, so
        only the known ones are taken.
        """
        match = _HOST.fullmatch(header)
        if match is None:
            return False
        name = match[1].strip("[]").lower()
        if is_loopback(name):
            return True
        if is_loopback(self.host):
            return False
        own = socket.gethostname().lower()
        return _address(name) is not None or name in (self.host.lower(), own, f"{own}.local")

    def token_fits(self, given: str) -> bool:
        """Whether this is the token; takes equally long for every wrong one."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def cookie_value(self, session: str) -> str:
        """What the cookie of a session holds: not the token, but what only its owner can make."""
        seal = hmac.new(self.token.encode(), session.encode(), hashlib.sha256).hexdigest()
        return f"{session}.{seal}"

    def session_of(self, header: str) -> str | None:
        """The session of a browser that once brought the token, by the cookies of a request.

        Cookies of other programs on this host are passed over, whatever they hold.
        """
        for part in header.split(";"):
            name, _, value = part.strip().partition("=")
            session = value.partition(".")[0]
            made = hmac.compare_digest(value.encode(), self.cookie_value(session).encode())
            if name == self.cookie and made:
                return session
        return None


class NameTakenError(ArgumentError):
    """Another browser answers under this name."""


class ReviewerNames:
    """Binds the names of reviewers to the sessions that used them first, while the server runs.

    A second device may ask for a name. The first one is asked to hand it over; if it is away, or
    does not reply, the name goes to the second one. What the first one has not sent yet is taken
    from it afterwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """No name is bound yet."""
        self._clock = clock
        self._owner: dict[str, str] = {}
        self._seen: dict[str, float] = {}
        self._former: dict[str, dict[str, str]] = {}
        self._wish: dict[str, _Wish] = {}
        self._lock = threading.Lock()

    def known(self) -> list[str]:
        """All names that are bound."""
        with self._lock:
            return list(self._owner)

    def claim(self, session: str, name: str) -> None:
        """Let a session act under a name.

        Raises:
            NameTakenError: Another one does already.
            ArgumentError: This session uses more names than people share a browser.
        """
        with self._lock:
            if name not in self._owner:
                self._bind(session, name)
            if self._owner[name] != session:
                raise NameTakenError(f"Another browser answers as {name!r}. Choose another name.")
            self._seen[name] = self._clock()

    def lost(self, session: str, name: str) -> str | None:
        """When a session handed a name over; None if it never had it, or has it."""
        with self._lock:
            return self._former.get(name, {}).get(session)

    def state(self, session: str, name: str) -> dict[str, bool]:
        """Whether a name is a session's own, and whether another device asks for it."""
        with self._lock:
            mine = self._owner.get(name) in (None, session)
            if mine and name in self._owner:
                self._seen[name] = self._clock()
            return {"mine": mine, "asked": mine and self._live_wish(name) is not None}

    def ask(self, session: str, name: str) -> str:
        """Ask for a name: ``given``, ``waiting`` (ask again in a second) or ``refused``."""
        with self._lock:
            if self._owner.get(name) in (None, session):
                self._bind(session, name)
                return "given"
            now, wish = self._clock(), self._live_wish(name)
            if wish is not None and wish.session != session:
                raise ArgumentError(f"A third device asks for {name!r} already. Try again later.")
            if wish is None:
                wish = _Wish(session, now, now)
            if wish.refused:
                del self._wish[name]
                return "refused"
            if now - wish.since >= REPLY_S or now - self._seen.get(name, -AWAY_S) >= AWAY_S:
                self._bind(session, name)
                return "given"
            self._wish[name] = replace(wish, last=now)
            return "waiting"

    def reply(self, session: str, name: str, *, hand_over: bool) -> None:
        """Answer for the device that has a name; without anybody who asks nothing happens."""
        with self._lock:
            wish = self._live_wish(name)
            if wish is None or self._owner.get(name) != session:
                return
            if hand_over:
                self._bind(wish.session, name)
            else:
                self._wish[name] = replace(wish, refused=True)

    def _bind(self, session: str, name: str) -> None:
        before = self._owner.get(name)
        if before == session:
            return
        if sum(owner == session for owner in self._owner.values()) >= _MOST_NAMES:
            raise ArgumentError(f"One browser may use at most {_MOST_NAMES} names.")
        former = self._former.setdefault(name, {})
        former.pop(session, None)
        if before is not None:
            former[before] = datetime.now(UTC).isoformat(timespec="milliseconds")
            for oldest in list(former)[:-_MOST_NAMES]:
                del former[oldest]
        self._owner[name], self._seen[name] = session, self._clock()
        self._wish.pop(name, None)

    def _live_wish(self, name: str) -> _Wish | None:
        """Who asks for a name, unless they have stopped asking."""
        wish = self._wish.get(name)
        if wish is not None and self._clock() - wish.last > STALE_S:
            del self._wish[name]
            return None
        return wish


REPLY_S = 30.0
"""How long the first device may take to answer before the second one gets a name."""
AWAY_S = 20.0
"""Without a request for so long, the first device is away and is not waited for."""
STALE_S = 10.0
"""Without asking again for so long, the second device has given up."""


@dataclass(frozen=True)
class _Wish:
    """A device that asks for a name."""

    session: str
    since: float
    last: float
    refused: bool = False


class Guard:
    """Lets a request through to the server, or answers it with the reason why not."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Stand before ``app``."""
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] != "http":
            return  # there are no web sockets here, and nothing to start
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        brought = refusal is None and self._brings_token(scope)
        session = self._access.session_of("; ".join(headers.getlist("cookie")))
        if refusal is None and not brought and session is None:
            refusal = _refuse(scope, 401, "Open the address with the token that was printed.")
        if brought and session is None:
            session = secrets.token_hex(16)
        handler = self._app if refusal is None else refusal
        opened = session if brought else None
        await handler({**scope, SESSION: session}, receive, self._with_headers(send, opened))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.host_allowed(hosts[0]):
            return _refuse(scope, 403, "The Host of this request is not this server.")
        origin = headers.get("origin")
        safe = scope["method"] in ("GET", "HEAD")
        if (origin is not None or not safe) and not _same_origin(origin, hosts[0]):
            return _refuse(scope, 403, "The Origin of this request is not this page.")
        opens_page = headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/"
        from_elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if from_elsewhere and not opens_page:
            return _refuse(scope, 403, "Another page may not use this server.")
        return None

    def _brings_token(self, scope: Scope) -> bool:
        if scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        return self._access.token_fits(given[0])

    def _with_headers(self, send: Send, opened: str | None) -> Send:
        """Add what every reply carries, and the cookie of a session that is opened by it."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if opened is not None:
                    # The page itself is sent, not a redirect: after a link from another page a
                    # strict cookie would be withheld from the redirected request.
                    headers["Set-Cookie"] = (
                        f"{self._access.cookie}={self._access.cookie_value(opened)}; Path=/;"
                        f" HttpOnly; SameSite=Strict; Max-Age={_COOKIE_S}"
                    )
            await send(message)

        return send_with_headers


def _refuse(scope: Scope, status: int, reason: str) -> Response:
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": reason}, status_code=status)
    return PlainTextResponse(f"{reason}\n", status_code=status)


def _same_origin(origin: str | None, host: str) -> bool:
    return origin in (f"http://{host}", f"https://{host}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


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
