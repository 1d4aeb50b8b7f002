"""Who is let in on loopback, whose cookie is whose, and who may answer under which name."""

from __future__ import annotations

import json
import stat
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.security import Access, NameTakenError, ReviewerNames
from hilltop.cli.review import Review, open_unseen
from hilltop.errors import ArgumentError
from tests.audit.made_up import write_audit
from tests.audit.review.serving import Server, answer_event, serving, stored


@pytest.fixture(scope="module")
def server(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("sessions")
    folder = write_audit(
        root / "audit", drawn / "thinned.csv", format="list_column", images=drawn / "images"
    )
    with serving(folder.path) as found:
        yield found


def test_other_users_of_this_machine_need_the_printed_link(server: Server) -> None:
    for path in ("/", "/api/start", "/api/pairs?class=0&count=1", "/image/0", "/page.js"):
        status, headers, body = server.request("GET", path, headers={"Cookie": ""})
        assert status == 401, path
        assert "set-cookie" not in headers
        assert b"token" in body
    own = {"Origin": f"http://{server.host}", "Content-Type": "application/json", "Cookie": ""}
    body = b'{"reviewer": "Ann", "events": []}'
    assert server.request("POST", "/api/events", body=body, headers=own)[0] == 401
    assert len(urlsplit(server.address).query) > len("token=") + 32


def test_cookies_of_other_programs_do_not_lock_anyone_out(server: Server) -> None:
    for others in ("lang=en US", 'a="; b=\x01', "=;;=", "x=[1,2]{}", "hilltop_review=1; =="):
        for cookie in (f"{others}; {server.cookie}", f"{server.cookie}; {others}"):
            assert server.request("GET", "/api/start", headers={"Cookie": cookie})[0] == 200
        stale = server.cookie.partition("=")[0] + "=stale.seal"
        both = f"{stale}; {server.cookie}"
        assert server.request("GET", "/api/start", headers={"Cookie": both})[0] == 200
        assert server.request("GET", "/api/start", headers={"Cookie": others})[0] == 401


def test_a_token_of_any_characters_is_quoted_in_the_address(audit: AuditFolder) -> None:
    with serving(audit.path, "--token", "a&b=c#d?e f+g%41/h") as server:
        assert unquote(urlsplit(server.address).query) == "token=a&b=c#d?e f+g%41/h"
        assert server.request("GET", "/api/start")[0] == 200


def send(server: Server, cookie: str, name: str, events: list[dict[str, Any]]) -> tuple[int, str]:
    headers = {
        "Origin": f"http://{server.host}", "Content-Type": "application/json", "Cookie": cookie
    }  # fmt: skip
    body = json.dumps({"reviewer": name, "events": events}).encode()
    status, _, reply = server.request("POST", "/api/events", body=body, headers=headers)
    return status, reply.decode()


def test_nobody_answers_or_undoes_under_another_ones_name(audit: AuditFolder) -> None:
    with serving(audit.path) as server:
        ann, eve = server.cookie, server.open_session()
        assert ann != eve
        one = server.get("/api/start", reviewer="Ann")["classes"][0]
        pair = server.get("/api/pairs", **{"class": one["number"], "count": 1})["pairs"][0]
        said = answer_event(1, pair, one["name"], "present")
        assert send(server, ann, "Ann", [said])[0] == 200
        other = answer_event(2, pair, one["name"], "absent")
        undo = {"id": "event-3", "action": "action-1", "undo": True}
        for event in (other, undo):
            status, reply = send(server, eve, "Ann", [event])
            assert status == 409  # which the page takes for "try again": nothing is thrown away
            assert "Another browser answers as 'Ann'" in reply
        assert "belongs to another reviewer" in send(server, eve, "Eve", [undo])[1]
        for path in ("/api/start?reviewer=Ann", "/api/pairs?class=0&count=1&reviewer=Ann"):
            assert server.request("GET", path, headers={"Cookie": eve})[0] == 409
        assert send(server, eve, "Eve", [other])[0] == 200
        assert send(server, ann, "Ann", [undo])[0] == 200
    assert [event.reviewer for event in stored(audit)] == ["Ann", "Eve", "Ann"]


def test_the_link_opened_again_goes_on_with_the_same_session(server: Server) -> None:
    path = f"/?{urlsplit(server.address).query}"
    _, headers, _ = server.request("GET", path)
    assert headers["set-cookie"].startswith(f"{server.cookie};")


def test_names_and_sessions() -> None:
    names = ReviewerNames()
    names.claim("one", "Ann")
    names.claim("one", "Ann")
    names.claim("one", "Ben")  # two people at one browser
    with pytest.raises(NameTakenError, match="Another browser answers as 'Ben'"):
        names.claim("two", "Ben")
    for number in range(50):
        names.claim("two", f"name {number}")
    with pytest.raises(ArgumentError, match="at most 50 names"):
        names.claim("two", "one more")


def test_a_session_cannot_be_made_up() -> None:
    access = Access("127.0.0.1", "a-token-of-24-characters", "c")
    value = access.cookie_value("session")
    assert access.session_of(f"c={value}") == "session"
    for wrong in (f"c={value}0", "c=session", "c=session.", "c=", "d=" + value, "c=x" + value):
        assert access.session_of(wrong) is None


def test_the_token_is_not_in_the_list_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    open_unseen("http://127.0.0.1:8000/?token=secret&x=1")
    (address,) = opened
    assert "secret" not in address
    file = Path(url2pathname(urlsplit(address).path))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "url=http://127.0.0.1:8000/?token=secret&amp;x=1" in file.read_text()
    file.unlink()


@pytest.mark.parametrize(("host", "said"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_plain_http_is_said_plainly(
    host: str, said: bool, audit: AuditFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    from hilltop.audit.review.session import Review as RunningReview

    review = RunningReview(audit)
    Review(audit.path, host=host)._ready("http://somewhere/", review)
    review.close()
    assert ("this is plain HTTP" in capsys.readouterr().out) == said
