"""Images are decoded apart from answers, within a budget, and only from files of known formats."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hilltop.audit.folder import AuditFolder
from hilltop.audit.review import thumbnails
from hilltop.audit.review.security import Access
from hilltop.audit.review.server import build_app
from hilltop.audit.review.session import Review
from hilltop.audit.review.thumbnails import DECODERS, PixelBudget, shrink
from hilltop.errors import DataError
from tests.processes import HANGING_S

ACCESS = Access("127.0.0.1", "a-token-of-24-characters")
HOST = "127.0.0.1:8000"


async def ask(app: Any, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send one request to an application without a socket."""
    headers = {
        "host": HOST, "cookie": f"{ACCESS.cookie}={ACCESS.cookie_value('s')}",
        "origin": f"http://{HOST}", "content-type": "application/json",
    }  # fmt: skip
    route, _, query = path.partition("?")
    scope = {
        "type": "http", "method": method, "path": route, "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def test_answers_do_not_wait_for_images(
    audit: AuditFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one pool of threads, a page full of slow images held up every answer."""
    review, go_on = Review(audit), threading.Event()
    app = build_app(review, ACCESS)
    at_once, most, lock = [0], [0], threading.Lock()

    def slow(row: int, size: str) -> bytes:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        assert go_on.wait(HANGING_S)
        with lock:
            at_once[0] -= 1
        return b"jpeg"

    assert review.pictures is not None
    monkeypatch.setattr(review.pictures, "jpeg", slow)

    async def session() -> None:
        images = [asyncio.create_task(ask(app, "GET", f"/image/{row}")) for row in range(60)]
        await asyncio.sleep(0)
        content = json.dumps({"reviewer": "Ann", "events": []}).encode()
        for _ in range(3):
            status, _ = await ask(app, "POST", "/api/events", content)
            assert status == 200
        assert not any(image.done() for image in images)
        go_on.set()
        assert {status for status, _ in await asyncio.gather(*images)} == {200}

    asyncio.run(session())
    review.close()
    assert most[0] <= DECODERS


def test_a_pipe_in_place_of_an_image_does_not_hang(tmp_path: Path) -> None:
    pipe, said = tmp_path / "a.jpg", list[str]()
    os.mkfifo(pipe)

    def look() -> None:
        try:
            shrink(pipe, 100)
        except DataError as error:
            said.append(str(error))

    looking = threading.Thread(target=look)
    looking.start()
    looking.join(60)
    if looking.is_alive():  # it waits for a writer: let it go, so that the tests go on
        os.close(os.open(pipe, os.O_WRONLY))
        looking.join()
        said.clear()
    assert said == [f"{pipe}: the image cannot be read: it is not a regular file."]
    (tmp_path / "folder.jpg").mkdir()
    with pytest.raises(DataError, match=r"folder\.jpg: the image cannot be read"):
        shrink(tmp_path / "folder.jpg", 100)


@pytest.mark.parametrize("kind", ["GIF", "PPM", "TIFF", "EPS", "ICO"])
def test_other_formats_under_a_known_ending_are_not_decoded(kind: str, tmp_path: Path) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "a.jpg", kind)
    with pytest.raises(DataError, match="the image cannot be read"):
        shrink(tmp_path / "a.jpg", 10)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP"])
def test_formats_of_the_known_endings_are(kind: str, tmp_path: Path) -> None:
    Image.new("RGB", (20, 20)).save(tmp_path / "a.jpg", kind)
    assert shrink(tmp_path / "a.jpg", 10)


def test_an_image_of_too_many_pixels_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thumbnails, "MOST_PIXELS", 99)
    Image.new("RGB", (10, 10)).save(tmp_path / "a.png")
    with pytest.raises(DataError, match="10 x 10 pixels are too many to show"):
        shrink(tmp_path / "a.png", 10)


def test_images_that_together_are_too_large_wait_for_each_other() -> None:
    budget, inside, go_on = PixelBudget(100), threading.Semaphore(0), threading.Event()
    at_once: list[int] = []
    running, lock = [0], threading.Lock()

    def decode(pixels: int) -> None:
        with budget.spend(pixels):
            with lock:
                running[0] += pixels
                at_once.append(running[0])
            inside.release()
            assert go_on.wait(HANGING_S)
            with lock:
                running[0] -= pixels

    threads = [threading.Thread(target=decode, args=(60,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert inside.acquire(timeout=HANGING_S)
    go_on.set()
    for thread in threads:
        thread.join(HANGING_S)
    assert at_once == [60] * 4
    with budget.spend(10_000):  # alone, the largest still goes
        pass
