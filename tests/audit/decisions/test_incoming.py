"""Files of answers that are taken in: what they change, and what was said since."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.decisions.apply import export_answers, read_answers
from hilltop.audit.decisions.incoming import import_file
from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.audit.review.session import Review
from hilltop.cli.main import main
from hilltop.errors import ArgumentError, DataError
from tests.audit.made_up import unknown_pairs
from tests.audit.review.serving import answer_event, stored


def take(folder: AuditFolder, name: str, text: str, **options: Any) -> int:
    store = DecisionStore(folder.decisions)
    try:
        return import_file(folder, name, text, store, pairs=AuditPairs.read(folder), **options).new
    finally:
        store.close()


def table(*rows: list[str], columns: str = "image,class,answer,reviewer,time") -> str:
    text = io.StringIO()
    csv.writer(text).writerows([columns.split(","), *rows])
    return text.getvalue()


def answer_now(folder: AuditFolder, who: str, pair: tuple[str, str], word: str, **more: str) -> Any:
    review = Review(folder)
    try:
        about = {"image": pair[0], "row": None}
        event = {**answer_event(f"{who[-3:]}-{word}", about, pair[1], word), **more}
        return review.record(who, [event])
    finally:
        review.close()


def said(folder: AuditFolder, pair: tuple[str, str]) -> dict[str, str]:
    votes = read_answers(folder).votes(pair[1], pair[0])
    return {who: vote.answer for who, vote in votes.items()}


@pytest.fixture
def pair(audit: AuditFolder) -> tuple[str, str]:
    return unknown_pairs(audit.table())[0][:2]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_an_older_answer_from_a_file_does_not_change_a_newer_one(
    audit: AuditFolder, pair: tuple[str, str], kind: str
) -> None:
    answer_now(audit, "Dan", pair, "absent")
    text = table([*pair, "yes", "dan", "2026-01-31T10:00:00Z"])
    if kind == "json":
        event = {"id": "1", "action": "1", "image": pair[0], "class": pair[1], "mode": "ranked"}
        event |= {"answer": "present", "time": "2026-01-31T10:00:00Z"}
        content = {"kind": "hilltop answers", "audit": audit.created, "reviewer": "dan"}
        text = json.dumps({**content, "events": [event]})
    assert take(audit, f"dan.{kind}", text) == 1
    assert take(audit, f"dan.{kind}", text) == 0
    assert said(audit, pair) == {"Dan": "absent"}
    assert len(stored(audit)) == 2, "nothing is lost"


def test_a_clock_that_was_ahead_does_not_hold_back_later_answers(
    audit: AuditFolder, pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    take(audit, "dan.csv", table([*pair, "yes", "Dan", "2999-01-01T00:00:00Z"]))
    (event,) = stored(audit)
    assert event.time < "2100"
    monkeypatch.setattr("hilltop.audit.review.session.now", lambda: "2000-01-01T00:00:00.000+00:00")
    answer_now(audit, "Dan", pair, "absent")
    assert said(audit, pair) == {"Dan": "absent"}


def test_what_comes_late_from_the_device_of_before_counts_as_given_then(
    audit: AuditFolder, pair: tuple[str, str]
) -> None:
    review = Review(audit)
    try:
        about = {"image": pair[0], "row": None}
        first, second, third = (
            answer_event(number, about, pair[1], word)
            for number, word in enumerate(("present", "absent", "unsure"))
        )
        review.record("Ann", [first])
        handed_over = "2200-01-01T00:00:00.000+00:00"
        for _ in range(2):  # sent again for want of a reply
            review.record("Ann", [second], late=handed_over)
        review.record("Ann", [third])
        for _ in range(2):
            review.record("Ann", [second], late=handed_over)
    finally:
        review.close()
    assert said(audit, pair) == {"Ann": "unsure"}


def test_exported_answers_are_taken_back_as_they_were(
    audit: AuditFolder, drawn: Path, tmp_path: Path, pair: tuple[str, str]
) -> None:
    other = tuple(unknown_pairs(audit.table())[1][:2])
    answer_now(audit, "Ann", pair, "present", mode="random")
    answer_now(audit, "=Ben", pair, "absent")
    answer_now(audit, "Cleo", pair, "present", mode="ruling")
    review = Review(audit)
    about = {"id": "c", "action": "c", "image": other[0], "class": other[1]}
    review.record("Ann", [{**about, "comment": "-1 or, “two”\nlines?"}])
    review.close()
    text = export_answers(read_answers(audit))
    assert not [row for row in csv.reader(io.StringIO(text)) if row[3].startswith("=")]
    assert take(audit, "answers.csv", text, may_rule=True) == 0, "all is known here"
    audit.decisions.rename(tmp_path / "moved away")
    with pytest.raises(DataError, match=r"line \d: Only an adjudicator may decide"):
        take(audit, "answers.csv", text)
    (tmp_path / "answers.csv").write_text(text)
    words = ["review", str(audit.path), "--import", str(tmp_path / "answers.csv")]
    assert main(words) == 0
    again = read_answers(audit)
    assert export_answers(again) == text
    assert resolve(again.votes(pair[1], pair[0]).values()) == "present"
    assert main(words) == 0
    assert len(stored(audit)) == 4


def test_an_undo_also_takes_back_what_was_exported_and_taken_in_again(
    audit: AuditFolder, pair: tuple[str, str]
) -> None:
    answer_now(audit, "Ann", pair, "present")
    take(audit, "answers.csv", export_answers(read_answers(audit)))
    review = Review(audit)
    review.record("Ann", [{"id": "u", "action": "action-Ann-present", "undo": True}])
    review.close()
    assert said(audit, pair) == {}


def test_faults_in_a_table_are_named_with_their_line(
    audit: AuditFolder, pair: tuple[str, str]
) -> None:
    good = [*pair, "yes", "Ann", ""]
    for bad, told in (
        (["nowhere.jpg", pair[1], "yes", "Ann", ""], "image 'nowhere.jpg' is not in this audit"),
        ([pair[0], "zebr", "yes", "Ann", ""], "class 'zebr' is not in the class list"),
        (
            [*pair, "yesx", "Ann", ""],
            "answer must be yes, no or unsure, but got 'yesx'. Did you mean",
        ),
        ([*pair, "yes", "Ann", "noon"], "needs a 'time' in ISO format, but got 'noon'"),
        ([*pair, "yes", "A" * 61, ""], "at most 60 printable characters"),
    ):
        with pytest.raises(DataError) as caught:
            take(audit, "a.csv", table(good, bad))
        assert "a.csv, line 3" in str(caught.value)
        assert told in str(caught.value)
    assert stored(audit) == []


def test_a_comment_that_is_too_long_is_refused_with_its_length(
    audit: AuditFolder, pair: tuple[str, str]
) -> None:
    review = Review(audit)
    about = {"id": "c", "action": "c", "image": pair[0], "class": pair[1]}
    with pytest.raises(ArgumentError, match=r"at most 2,000 characters, but this one has 10,000"):
        review.record("Ann", [{**about, "comment": "x" * 10_000}])
    review.close()
    assert stored(audit) == []


def test_an_older_comment_from_a_file_does_not_change_a_newer_one() -> None:
    from hilltop.audit.decisions.store import Comment

    answers = Answers()
    for time, text in (("2026-02-02", "new"), ("2026-02-01", "old"), ("2026-02-02", "newest")):
        answers.take(Comment(text, text, "Ann", time, "a.jpg", "dog", text))
        assert answers.comments("dog", "a.jpg")["Ann"].startswith("new")
    answers.take(Comment("none", "none", "Ann", "2026-02-03", "a.jpg", "dog", ""))
    assert answers.comments("dog", "a.jpg") == {}
