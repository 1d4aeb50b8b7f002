"""A connection that asks nothing is closed, and one that asks stays open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from hilltop.audit.review import security
from hilltop.audit.review.security import HeaderTimeout
from tests.processes import HANGING_S

ASK = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    await send(head)
    await send({"type": "http.response.body", "body": b"hi"})


async def connect(
    made: list[HeaderTimeout],
) -> tuple[asyncio.Server, asyncio.StreamReader, asyncio.StreamWriter]:
    config, state = uvicorn.Config(hello, lifespan="off"), ServerState()
    config.load()

    def protocol() -> HeaderTimeout:
        made.append(HeaderTimeout(config, state, {}))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    return server, *(await asyncio.open_connection(*server.sockets[0].getsockname()[:2]))


@pytest.mark.parametrize("sent", [b"", ASK[:20]], ids=["nothing", "half"])
def test_a_connection_without_a_request_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "FIRST_REQUEST_S", 0.01)

    async def session() -> bytes:
        server, reader, writer = await connect([])
        writer.write(sent)
        async with server:
            found = await asyncio.wait_for(reader.read(), HANGING_S)
            writer.close()
        return found

    assert asyncio.run(session()) == b""


def test_a_connection_that_asks_again_by_half_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has no token gets one refusal, and must not stay for it."""

    async def session() -> bytes:
        server, reader, writer = await connect([])
        async with server:
            writer.write(ASK)
            await asyncio.wait_for(reader.readuntil(b"hi"), HANGING_S)
            monkeypatch.setattr(security, "FIRST_REQUEST_S", 0.01)
            writer.write(ASK[:20])
            found = await asyncio.wait_for(reader.read(), HANGING_S)
            writer.close()
        return found

    assert asyncio.run(session()) == b""


def test_a_connection_that_has_asked_stays_open() -> None:
    async def session() -> None:
        made: list[HeaderTimeout] = []
        server, reader, writer = await connect(made)
        async with server:
            for _ in range(2):
                writer.write(ASK)
                answer = await asyncio.wait_for(reader.readuntil(b"hi"), HANGING_S)
                assert answer.startswith(b"HTTP/1.1 200")
                assert made[0].waiting is None
            writer.close()

    asyncio.run(session())
