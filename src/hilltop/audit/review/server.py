"""The local review server: routes and the listening socket; no maths and no rules of its own."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import uvicorn
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hilltop.audit.decisions.incoming import check_reviewer
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.security import (
    SESSION,
    SHORTEST_TOKEN,
    Access,
    Guard,
    HeaderTimeout,
    NameTakenError,
    ReviewerNames,
)
from hilltop.audit.review.session import VIEWS, Review, Search, View
from hilltop.audit.review.static_page import PAGE, SCRIPTS
from hilltop.audit.review.thumbnails import DECODERS, SIDES_PX, Size
from hilltop.checks import check_choice, check_number
from hilltop.data.small_files import parse_json
from hilltop.errors import ArgumentError, DataError, HilltopError

_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_FILES = ("page.html", "page.css", "icon.svg", *(f"{name}.js" for name in ("client", *SCRIPTS)))
_MOST_BYTES = 2 << 20
_MOST_IMPORTED = 64 << 20
LAST_PORT = 65535
MOST_CONNECTIONS = 500
"""Connections at once; further ones are told to try again instead of using up all files."""
_IMAGE_CACHE = "private, max-age=3600"


def build_app(review: Review, access: Access) -> Guard:
    """Return the application: the page, its questions, and the guard before them."""
    names = ReviewerNames()
    decoding = CapacityLimiter(DECODERS)  # a page asks for dozens at once; answers do not queue

    def spelled(given: Any) -> str:
        return review.spelled(check_reviewer(given), names.known())

    def named(request: Request, given: Any) -> str:
        """The reviewer of a request, whose name is bound to its session."""
        name = spelled(given)
        names.claim(request.scope[SESSION], name)
        return name

    def shown(answer: Callable[[Asked, str], Any]) -> Callable[[Request], Response]:
        """What a GET request shows: ``answer`` gets its parameters and the reviewer."""

        def endpoint(request: Request) -> Response:
            asked = Asked(request.query_params)
            # A page asks for the classes before anybody has given a name.
            given = asked.get("reviewer")
            return JSONResponse(answer(asked, named(request, given) if given else ""))

        return endpoint

    def told(
        take: Callable[[Content, str], Any], most: int = _MOST_BYTES
    ) -> Callable[[Request], Awaitable[Response]]:
        """What a POST request tells: ``take`` gets its content and the reviewer."""

        async def endpoint(request: Request) -> Response:
            content = await _json(request, most=most)
            reviewer = named(request, content.get("reviewer"))
            return JSONResponse(await run_in_threadpool(take, content, reviewer))

        return endpoint

    async def events(request: Request) -> Response:
        content = await _json(request)
        reviewer, session = spelled(content.get("reviewer")), request.scope[SESSION]
        late = names.lost(session, reviewer)  # what waited there when the name went elsewhere
        if late is None:
            names.claim(session, reviewer)
        stored = await run_in_threadpool(review.record, reviewer, content.get("events"), late=late)
        return JSONResponse({**stored, "mine": late is None})

    async def name(request: Request) -> Response:
        """Whose a name is; a second device asks for it, the first one hands it over or keeps it."""
        session = request.scope[SESSION]
        if request.method == "GET":
            reviewer = spelled(request.query_params.get("reviewer"))
            return JSONResponse(names.state(session, reviewer))
        content = await _json(request)
        reviewer = spelled(content.get("reviewer"))
        wish = check_choice("wish", content.get("wish", ""), ("ask", "hand over", "keep"))
        if wish == "ask":
            return JSONResponse({"reply": names.ask(session, reviewer)})
        names.reply(session, reviewer, hand_over=wish == "hand over")
        return JSONResponse(names.state(session, reviewer))

    def pairs(asked: Asked, reviewer: str) -> Any:
        return review.page(
            column=asked.whole("class"),
            view=cast(View, check_choice("view", asked.get("view", "ranked"), VIEWS)),
            start=asked.optional("start"),
            count=asked.whole("count"),
            reviewer=reviewer,
            search=asked.search(),
        )

    def picture(asked: Asked, reviewer: str) -> Any:
        place, search = asked.optional("place"), asked.search()
        return review.image(place=place, reviewer=reviewer, search=search)

    def disputes(asked: Asked, reviewer: str) -> Any:
        start, count = asked.optional("start"), asked.whole("count")
        return review.disputes(start=start, count=count, reviewer=check_reviewer(reviewer))

    def take_file(content: Content, reviewer: str) -> Any:
        name, text, force = content.get("name"), content.get("text"), content.get("force") is True
        if not isinstance(name, str) or not isinstance(text, str):
            raise ArgumentError("A file needs 'name' and 'text'.")
        return review.take_file(reviewer, name, text, force=force)

    def export(request: Request) -> Response:
        file, content = review.export(request.query_params.get("what", ""))
        headers = {"Content-Disposition": f'attachment; filename="{file}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def image(request: Request) -> Response:
        asked = request.query_params.get("size", "small")
        size = cast(Size, check_choice("size", asked, list(SIDES_PX)))
        if review.pictures is None:
            raise ArgumentError("This review has no images.")
        try:
            row = Asked(request.path_params).whole("row")
            content = await run_sync(review.pictures.jpeg, row, size, limiter=decoding)
        except (ArgumentError, DataError):  # whose message may hold paths of this machine
            return JSONResponse({"error": "This image cannot be shown."}, status_code=404)
        return Response(content, media_type="image/jpeg", headers={"Cache-Control": _IMAGE_CACHE})

    routes = [
        *(Route(f"/{name}".removesuffix("page.html"), _file(name)) for name in _FILES),
        Route("/api/start", shown(lambda _, reviewer: review.start(reviewer))),
        Route("/api/pairs", shown(pairs)),
        Route("/api/picture", shown(picture)),
        Route("/api/events", events, methods=["POST"]),
        Route("/api/name", name, methods=["GET", "POST"]),
        Route("/api/team", shown(lambda _, reviewer: review.team(check_reviewer(reviewer)))),
        Route("/api/assign", told(lambda plan, who: review.assign(who, plan)), methods=["POST"]),
        Route("/api/disputes", shown(disputes)),
        Route("/api/export", export),
        Route("/api/import", told(take_file, most=_MOST_IMPORTED), methods=["POST"]),
        Route("/image/{row}", image),
    ]
    # The handlers return a reason; whatever is not ours is a defect and becomes a bare 500.
    app = Starlette(routes=routes, exception_handlers={HilltopError: _reason})
    return Guard(app, access)


class Asked(dict[str, str]):
    """The parameters of a request."""

    def whole(self, name: str) -> int:
        """A whole number, which must be there."""
        word = self.get(name, "")
        if not (word.isascii() and word.isdigit() and len(word) < 16):
            raise ArgumentError(f"{name} must be a whole number, but got {word!r:.40}.")
        return int(word)

    def optional(self, name: str) -> int | None:
        """A whole number, or None if it is not there."""
        return self.whole(name) if name in self else None

    def search(self) -> Search:
        """What a page is narrowed to."""
        return Search(
            text=self.get("text", ""),
            column=self.get("column", "image"),
            like=self.optional("like"),
            mine=self.get("mine") == "true",
        )


Content = dict[str, Any]
"""The JSON object of a request."""


def serve(
    folder: AuditFolder,
    *,
    images: Path | None,
    host: str,
    port: int,
    token: str | None,
    ready: Callable[[str, Review], None],
    metadata: Path | None = None,
    adjudicators: Sequence[str] = (),
) -> int:
    """Serve until interrupted; return the number of events in the file of answers.

    Args:
        folder: The audit.
        images: Where the images are now, if not where the audit found them.
        host: Name or address to listen on.
        port: Port to listen on; 0 takes a free one.
        token: Secret that a browser must bring; one is made if it is None.
        ready: Called with the address once the server listens.
        metadata: A CSV file with a column ``image`` and others to search by.
        adjudicators: Who may decide where answers differ, and assign work; everybody without any.
    """
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii()):
        raise ArgumentError(f"--token must have at least {SHORTEST_TOKEN} ASCII characters.")
    check_number("--port", port, low=0, high=LAST_PORT)
    token = token or secrets.token_urlsafe(32)
    review = Review(folder, images=images, metadata=metadata, adjudicators=adjudicators)
    try:
        listening = _listen(host, port)
        number = listening.getsockname()[1]
        # Browsers share cookies between the ports of a host, so the port is part of the name.
        access = Access(host, token, f"hilltop_review_{number}")
        config = uvicorn.Config(
            build_app(review, access),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=3,
            limit_concurrency=MOST_CONNECTIONS,
            http=HeaderTimeout,
        )
        ready(_address(host, number, token), review)
        with contextlib.suppress(KeyboardInterrupt):  # the usual end
            uvicorn.Server(config).run(sockets=[listening])
        return len(review.store)
    finally:
        review.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except BaseException:
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ArgumentError(
            f"Cannot listen on {host}, port {port}: {reason}. Choose another with --port;"
            " --port 0 takes a free one."
        ) from None
    return listening


def _address(host: str, port: int, token: str) -> str:
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{port}/?token={quote(token, safe='')}"


def _file(name: str) -> Callable[[Request], Response]:
    content = (PAGE / name).read_bytes()
    kind = _KINDS[Path(name).suffix]

    def send(request: Request) -> Response:
        return Response(content, headers={"Content-Type": f"{kind}; charset=utf-8"})

    return send


async def _json(request: Request, *, most: int = _MOST_BYTES) -> Content:
    # A form can be sent by any page without asking first; JSON of this type cannot.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ArgumentError("Expected content of the type application/json.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise ArgumentError(f"At most {most} bytes at once.")
    try:
        content = parse_json(body)
    except (ValueError, RecursionError):
        raise ArgumentError("The content is not valid JSON.") from None
    if not isinstance(content, dict):
        raise ArgumentError("Expected a JSON object.")
    return content


def _reason(request: Request, error: Exception) -> Response:
    # What is wrong with our files may be mended: then the page keeps its answers and tries again.
    status = 503 if isinstance(error, DataError) else 422
    status = 409 if isinstance(error, NameTakenError) else status
    return JSONResponse({"error": str(error)}, status_code=status)
