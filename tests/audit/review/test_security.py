"""Who is let in, which images can be fetched, and what every reply carries."""

from __future__ import annotations

import http.client
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.security import Access, is_loopback
from hilltop.audit.review.thumbnails import ImageStore, shrink
from hilltop.cli.main import main
from hilltop.data import LabelTable, State
from hilltop.errors import DataError
from tests.audit.made_up import write_audit
from tests.audit.review.serving import Server, serving
from tests.processes import HANGING_S

TOKEN = "a-token-of-24-characters"
STRANGER = {"Cookie": ""}
"""Headers of a browser that never brought the token."""


@pytest.fixture(scope="module")
def server(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("open")
    folder = write_audit(
        root / "audit", drawn / "thinned.csv", format="list_column", images=drawn / "images"
    )
    with serving(folder.path) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("guarded")
    folder = write_audit(
        root / "audit", drawn / "thinned.csv", format="list_column", images=drawn / "images"
    )
    with serving(folder.path, "--token", TOKEN) as found:
        yield found


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "a b", "[::1"])
def test_a_foreign_host_is_refused(server: Server, host: str) -> None:
    for path in ("/", "/api/start", "/image/0"):
        assert server.request("GET", path, headers={"Host": host})[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9999", "[::1]:8000", "LOCALHOST:1"])
def test_names_of_this_machine_are_let_in(server: Server, host: str) -> None:
    assert server.request("GET", "/", headers={"Host": host})[0] == 200


def test_two_hosts_are_refused(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANGING_S)
    connection.putrequest("GET", "/", skip_host=True)
    connection.putheader("Host", server.host)
    connection.putheader("Host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status in (400, 403)
    connection.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_other_pages_in_the_browser_are_refused(server: Server, headers: dict[str, str]) -> None:
    assert server.request("GET", "/api/start", headers=headers)[0] == 403
    assert server.request("GET", "/image/0", headers=headers)[0] == 403


def test_a_link_from_another_page_may_open_the_page_but_nothing_else(server: Server) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert server.request("GET", "/", headers=link)[0] == 200
    assert server.request("GET", "/api/start", headers=link)[0] == 403


def test_answers_need_the_origin_and_the_type_of_the_page(server: Server) -> None:
    body = b'{"reviewer": "Ann", "events": []}'
    own = {"Origin": f"http://{server.host}", "Content-Type": "application/json"}
    assert server.request("POST", "/api/events", body=body, headers=own)[0] == 200
    without = {"Content-Type": "application/json"}
    assert server.request("POST", "/api/events", body=body, headers=without)[0] == 403
    form = {**own, "Content-Type": "text/plain"}
    assert server.request("POST", "/api/events", body=body, headers=form)[0] == 422


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b" " * (3 << 20),
        b'{"reviewer": "Ann", "events": [{"id": "1", "action": "1", "image": "\\ud800"}]}',
    ],
)
def test_content_that_makes_no_sense_is_refused_in_words(server: Server, body: bytes) -> None:
    own = {"Origin": f"http://{server.host}", "Content-Type": "application/json"}
    status, _, reply = server.request("POST", "/api/events", body=body, headers=own)
    assert status == 422
    assert b'"error"' in reply


def test_every_reply_forbids_foreign_scripts_frames_and_guessing(server: Server) -> None:
    for path in ("/", "/page.js", "/page.css", "/api/start", "/image/0", "/nowhere"):
        _, headers, _ = server.request("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/image/../../etc/passwd",
        "/image/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/image/000000.jpg",
        "/image/-1",
        "/image/99999999",
        f"/image/{'9' * 5000}",
        "/page/../server.py",
        "/server.py",
        "/..%2fserver.py",
        "//etc/passwd",
    ],
)
def test_only_images_of_the_table_can_be_fetched(server: Server, path: str) -> None:
    status, _, body = server.request("GET", path)
    assert status == 404
    assert b"root:" not in body
    assert b"/" not in body  # not even where things are on this machine


def test_images_are_small_jpegs(server: Server) -> None:
    status, headers, body = server.request("GET", "/image/3?size=small")
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(body)).size == (64, 64)
    assert server.request("GET", "/image/3?size=huge")[0] == 422


def test_without_the_token_nothing_is_told(guarded: Server) -> None:
    for path in ("/", "/?token=", "/?token=wrong", "/api/start", f"/api/start?token={TOKEN}"):
        status, headers, body = guarded.request("GET", path, headers=STRANGER)
        assert status == 401
        assert "set-cookie" not in headers
        assert b"token that was printed" in body
    assert guarded.request("GET", "/image/0", headers=STRANGER)[0] == 401


def test_the_token_becomes_a_strict_cookie_that_opens_the_rest(guarded: Server) -> None:
    status, headers, _ = guarded.request("GET", f"/?token={TOKEN}", headers=STRANGER)
    assert status == 200
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=2592000"}
    assert TOKEN not in cookie
    assert guarded.request("GET", "/api/start", headers={"Cookie": cookie})[0] == 200
    for wrong in (f"{cookie}x", cookie.partition("=")[0] + "=", "=;=", "a=\x7f"):
        assert guarded.request("GET", "/api/start", headers={"Cookie": wrong})[0] == 401


def test_the_printed_address_holds_the_token(guarded: Server) -> None:
    assert guarded.address.endswith(f"/?token={TOKEN}")


def test_beyond_this_machine_a_token_is_made() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9")] == [
        True
    ] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "10.0.0.1", "::", "host")] == [False] * 4
    wide = Access("0.0.0.0", TOKEN)
    assert wide.host_allowed("192.168.1.7:8000")
    assert not wide.host_allowed("evil.example:8000")
    assert not Access("127.0.0.1", TOKEN).host_allowed("192.168.1.7:8000")


def test_behind_a_proxy_the_name_of_the_server_is_let_in_without_its_port() -> None:
    proxied = Access("review.example.org", TOKEN)
    assert proxied.host_allowed("review.example.org")
    assert not proxied.host_allowed("other.example.org")


def test_a_short_token_is_refused(audit: AuditFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(audit.path), "--port", "0", "--token", "short"]) == 2
    assert "--token must have at least 16 ASCII characters" in capsys.readouterr().err


def store_of(folder: Path, *names: str) -> ImageStore:
    table = LabelTable.from_coo(list(names), ["c"], [], [], State.PRESENT, unlisted=State.UNKNOWN)
    return ImageStore(folder, table, np.arange(len(names)))


def test_links_out_of_the_folder_are_not_followed(drawn: Path, tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret.jpg", tmp_path / "images"
    shutil.copy(drawn / "images" / "000000.jpg", secret)
    folder.mkdir()
    shutil.copy(secret, folder / "own.jpg")
    os.symlink(secret, folder / "out.jpg")
    os.symlink("own.jpg", folder / "in.jpg")
    os.symlink(tmp_path, folder / "up")
    store = store_of(folder, "out.jpg", "in", "own", "up/secret")
    assert store.jpeg(1, "small") == store.jpeg(2, "small")
    for row in (0, 3):
        with pytest.raises(DataError, match="a link leads out of the folder of images"):
            store.jpeg(row, "small")


def test_ids_that_lead_out_of_the_folder_stop_the_start(tmp_path: Path) -> None:
    for name in ("../secret", "/etc/passwd", "a/../../b"):
        with pytest.raises(DataError, match="leads out of the folder"):
            store_of(tmp_path, name)


def test_pictures_are_upright_small_and_rgb(tmp_path: Path) -> None:
    image = Image.new("RGB", (400, 200), "white")
    exif = Image.Exif()
    exif[0x0112] = 6  # taken with the camera on its side
    image.save(tmp_path / "turned.jpg", exif=exif)
    Image.new("RGBA", (50, 50), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    Image.new("I;16", (50, 50), 65535).save(tmp_path / "deep.png")
    turned = Image.open(io.BytesIO(shrink(tmp_path / "turned.jpg", 100)))
    assert (turned.size, turned.mode) == ((50, 100), "RGB")
    for name in ("clear.png", "deep.png"):
        shown = Image.open(io.BytesIO(shrink(tmp_path / name, 100)))
        assert shown.mode == "RGB"
        assert min(shown.getpixel((25, 25))) > 250  # type: ignore[type-var, arg-type]


def test_broken_images_are_faults_in_words(drawn: Path, tmp_path: Path) -> None:
    whole = (drawn / "images" / "000000.jpg").read_bytes()
    for name, content in (("cut.jpg", whole[:500]), ("text.jpg", b"hello"), ("empty.jpg", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}: the image cannot be read"):
            shrink(tmp_path / name, 100)


def test_the_cache_stays_within_its_bound(drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = sorted(path.name for path in (drawn / "images").iterdir())[:20]
    store = store_of(drawn / "images", *names)
    monkeypatch.setattr("hilltop.audit.review.thumbnails._CACHE_BYTES", 9000)
    pictures = [store.jpeg(row, "small") for row in range(20)]
    kept = list(store._kept.values())
    assert sum(map(len, kept)) == store._kept_bytes <= 9000
    assert kept == pictures[-len(kept) :]
    assert [store.jpeg(row, "small") for row in range(20)] == pictures
