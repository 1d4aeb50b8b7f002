"""The running server: what it tells, what it stores, and that being killed costs no answer."""

from __future__ import annotations

import http.client
import json
import signal
import sys
import threading

import pytest

from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.errors import install_command
from tests.audit.review.serving import Server, answer_event, serving
from tests.processes import HANGING_S


def first_class(server: Server) -> dict[str, object]:
    found: list[dict[str, object]] = server.get("/api/start", reviewer="Ann")["classes"]
    return max(found, key=lambda one: one["candidates"])  # type: ignore[arg-type, return-value]


def page(server: Server, number: object, **asked: object) -> dict[str, object]:
    wanted = {"class": number, "view": "ranked", "count": 60, "reviewer": "Ann", **asked}
    found: dict[str, object] = server.get("/api/pairs", **wanted)
    return found


def test_pages_follow_the_ranking_and_leave_nothing_out(audit: AuditFolder) -> None:
    with serving(audit.path) as server:
        one = first_class(server)
        whole = page(server, one["number"])["pairs"]
        parts = [
            pair
            for start in range(0, 60, 7)
            for pair in page(server, one["number"], start=start, count=7)["pairs"]  # type: ignore[attr-defined]
        ]
        chances = [pair["probability"] for pair in parts]
        assert parts == whole
        assert len({pair["image"] for pair in parts}) == one["candidates"]
        assert chances == sorted(chances, reverse=True)
        labels = audit.table()
        for pair in parts:
            known = labels.labels_of(int(labels.find([pair["image"]])[0]))
            assert pair["labels"] == list(known)
            assert one["name"] not in known


def test_the_random_sample_is_the_same_for_all_and_hides_what_would_sway(
    audit: AuditFolder,
) -> None:
    def sample(server: Server, number: object, reviewer: str) -> list[dict[str, object]]:
        found = page(server, number, view="random", reviewer=reviewer)["pairs"]
        assert isinstance(found, list)
        return found

    with serving(audit.path) as server:
        one = first_class(server)
        drawn = sample(server, one["number"], "Ann")
        assert [pair["image"] for pair in sample(server, one["number"], "Ben")] == [
            pair["image"] for pair in drawn
        ]
        ranked = page(server, one["number"])["pairs"]
    assert {pair["probability"] for pair in drawn} == {None}
    names = [pair["image"] for pair in drawn]
    ranked_names = [pair["image"] for pair in ranked]  # type: ignore[attr-defined]
    assert sorted(names) == sorted(ranked_names)  # type: ignore[type-var]
    assert names != ranked_names
    with serving(audit.path) as server:
        assert [pair["image"] for pair in sample(server, one["number"], "Ann")] == names


def test_answers_of_others_appear_once_one_has_answered(audit: AuditFolder) -> None:
    with serving(audit.path) as server:
        one = first_class(server)
        number, name = one["number"], str(one["name"])
        pair = page(server, number)["pairs"][0]  # type: ignore[index]
        server.post("Ben", [answer_event(1, pair, name, "absent")])
        before = page(server, number)["pairs"][0]  # type: ignore[index]
        assert (before["others"], before["other_count"], before["answer"]) == (None, 1, None)
        _, reply = server.post("Ann", [answer_event(2, pair, name, "present")])
        said = [{"reviewer": "Ben", "answer": "absent"}]
        told = {"class": name, "image": pair["image"], "others": said, "comments": []}
        assert reply["others"] == [told]
        disputed = server.get("/api/disputes", count=60, reviewer="Cleo")
        assert disputed["total"] == 1
        assert [one["answer"] for one in disputed["pairs"][0]["others"]] == ["present", "absent"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": "maybe"}, "answer must be one of 'present', 'absent', 'unsure'"),
        ({"mode": "fast"}, "mode must be one of 'ranked', 'random'"),
        ({"class": "unicorn"}, "Class 'unicorn' of image"),
        ({"image": "other.jpg"}, "is not a candidate of this audit"),
        ({"row": 10**9}, "is not a candidate of this audit"),
        ({"row": True}, "is not a candidate of this audit"),
        ({"id": "a b"}, "An event needs 'id'"),
        ({"action": 3}, "An event needs 'action'"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused_with_all_beside_it(
    audit: AuditFolder, change: dict[str, object], said: str
) -> None:
    from hilltop.audit.review.session import Review
    from hilltop.errors import ArgumentError

    review = Review(audit)
    one = max(review.start("Ann")["classes"], key=lambda found: found["candidates"])
    pairs = review.page(column=one["number"], view="ranked", start=0, count=2, reviewer="Ann")
    events = [
        answer_event(n, pair, one["name"], "present") for n, pair in enumerate(pairs["pairs"])
    ]
    with pytest.raises(ArgumentError, match=said):
        review.record("Ann", [events[0], {**events[1], **change}])
    assert review.store.read() == []
    review.close()


def test_one_reviewer_cannot_undo_what_another_said(audit: AuditFolder) -> None:
    with serving(audit.path) as server:
        one = first_class(server)
        pair = page(server, one["number"])["pairs"][0]  # type: ignore[index]
        server.post("Ben", [answer_event(1, pair, str(one["name"]), "absent")])
        undo = {"id": "u", "action": "action-1", "undo": True}
        status, reply = server.post("Ann", [undo])
        assert (status, reply) == (422, {"error": "This action belongs to another reviewer."})
        assert server.post("Ben", [undo])[0] == 200
        assert page(server, one["number"], reviewer="Ben")["pairs"][0]["answer"] is None  # type: ignore[index]


def test_two_hammering_reviewers_and_a_kill_lose_no_acknowledged_answer(
    audit: AuditFolder,
) -> None:
    acknowledged: list[set[str]] = [set(), set()]
    with serving(audit.path) as server:
        one = first_class(server)
        pairs = page(server, one["number"])["pairs"]
        enough = threading.Semaphore(0)

        def hammer(who: int) -> None:
            try:
                for turn in range(10_000):
                    pair = pairs[turn % len(pairs)]  # type: ignore[index, arg-type]
                    event = answer_event(f"{who}-{turn}", pair, str(one["name"]), "present")
                    status, reply = server.post(f"reviewer {who}", [event])
                    assert status == 200
                    acknowledged[who].update(reply["stored"])
                    enough.release()
            except (OSError, http.client.HTTPException):
                pass  # the server is gone, which is the point

        threads = [threading.Thread(target=hammer, args=(who,)) for who in (0, 1)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            assert enough.acquire(timeout=HANGING_S)
        server.kill()
        for thread in threads:
            thread.join(HANGING_S)
    store = DecisionStore(audit.decisions)
    stored = [event.id for _, event in store.read()]
    store.close()
    assert all(acknowledged)
    assert acknowledged[0] | acknowledged[1] <= set(stored)
    assert len(stored) == len(set(stored))


def test_names_are_data_and_never_markup(hostile: AuditFolder) -> None:
    with serving(hostile.path) as server:
        status, headers, body = server.request("GET", "/api/start?reviewer=x")
        assert (status, headers["content-type"]) == (200, "application/json")
        names = {one["name"] for one in json.loads(body)["classes"]}
        assert names == set(hostile.table().classes)
        _, headers, body = server.request("GET", "/")
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert b"alert(" not in body
        one = json.loads(server.request("GET", "/api/start?reviewer=x")[2])["classes"][0]
        pair = page(server, one["number"])["pairs"][0]  # type: ignore[index]
        status, _ = server.post("<b>Ann</b>", [answer_event(1, pair, one["name"], "present")])
        assert status == 200
    store = DecisionStore(hostile.decisions)
    [(_, event)] = store.read()
    store.close()
    assert isinstance(event, Answer)
    assert (event.reviewer, event.class_name) == ("<b>Ann</b>", one["name"])


def test_a_taken_port_is_said_in_one_sentence(
    audit: AuditFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(audit.path) as server:
        assert main(["review", str(audit.path), "--port", str(server.port)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"hilltop: Cannot listen on 127.0.0.1, port {server.port}: ")
    assert "--port 0 takes a free one" in said
    assert said.count("\n") == 1


def test_without_a_folder_of_images_names_are_shown(audit: AuditFolder) -> None:
    from tests.audit.made_up import without_images

    with serving(without_images(audit).path) as server:
        one = first_class(server)
        assert page(server, one["number"])["pairs"][0]["picture"] is False  # type: ignore[index]
        assert server.request("GET", "/image/0")[0] == 422


def test_without_the_extra_packages_it_says_which_to_install(
    audit: AuditFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert main(["review", str(audit.path)]) == 2
    said = capsys.readouterr().err
    assert said == (
        "hilltop: The review page needs extra packages."
        f" Install them with: {install_command('review')}\n"
    )


def test_ctrl_c_ends_it_and_says_what_comes_next(audit: AuditFolder) -> None:
    with serving(audit.path) as server:
        one = first_class(server)
        pair = page(server, one["number"])["pairs"][0]  # type: ignore[index]
        server.post("Ann", [answer_event(1, pair, str(one["name"]), "present")])
        server.process.send_signal(signal.SIGINT)
        assert server.process.stdout is not None
        said = server.process.stdout.read()
        assert server.process.wait(HANGING_S) == 0
    assert f"{audit.decisions}: 1 answer or undo" in said
    assert f"next: hilltop apply {audit.path} --out FILE" in said
