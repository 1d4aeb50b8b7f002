"""Teams: who is asked about what, how far people agree, and names on two devices."""

from __future__ import annotations

import csv
import io
import json
import socket
import sqlite3
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hilltop.audit.decisions.answers import Answers, resolve
from hilltop.audit.decisions.store import Answer
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.audit.review.people import (
    Assignment,
    Metadata,
    agreement,
    alpha_of,
    cohen_kappa,
    deal,
    fleiss_kappa,
    read_metadata,
)
from hilltop.audit.review.security import AWAY_S, NameTakenError, ReviewerNames
from hilltop.audit.review.session import MOST_PAIRS, Review
from hilltop.cli.main import main
from hilltop.errors import ArgumentError, DataError, HilltopError
from tests.audit.review.serving import answer_event


def given(reviewer: str, image: str, word: Any, mode: Any = "ranked") -> Answer:
    own = f"{reviewer}-{image}-{mode}"
    return Answer(
        own, own, reviewer, f"2026-01-31T10:00:0{len(mode)}", image, "dog", word, mode, 0.5
    )


def test_shares_cover_all_images_once_and_the_overlap_is_everybodys() -> None:
    dealt = deal([f"{number}.jpg" for number in range(20_000)])
    plan = Assignment.from_words(["Ann=dog", "Ben", "Cleo=25%"], ["cat", "dog"])
    ben, cleo = (plan.mine(name, "cat", dealt) for name in ("Ben", "Cleo"))
    assert (ben ^ cleo).all()
    assert cleo.mean() == pytest.approx(0.25, abs=0.02)
    assert plan.mine("Ann", "dog", dealt).all()
    assert not plan.mine("Ann", "cat", dealt).any()
    shared = Assignment.from_words(["Ben", "Cleo"], ["cat", "dog"], overlap=0.2)
    both = shared.mine("Ben", "cat", dealt) & shared.mine("Cleo", "cat", dealt)
    assert both.mean() == pytest.approx(0.2, abs=0.02)


def test_agreement_is_between_people_and_not_with_rulings() -> None:
    answers = Answers()
    for image, words in {
        "a": ("present",) * 2,
        "b": ("present", "absent"),
        "c": ("absent",) * 2,
    }.items():
        for who, word in zip(("Ann", "Ben"), words, strict=True):
            answers.take(given(who, image, word))
    answers.take(given("Cleo", "b", "present", "ruling"))
    everybody, two = agreement(answers, {})
    assert (two.people, two.pairs, two.same) == (("Ann", "Ben"), 3, 2)
    assert two.alpha == everybody.alpha == pytest.approx(1 - (1 / 3) / (3 / 5))
    assert alpha_of([(2, 0), (3, 0)]) is None
    assert resolve(answers.votes("dog", "b").values()) == "present"


def test_kappas_are_those_of_scikit_learn_and_of_the_literature() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    first = rng.random(200) < 0.4
    second = first ^ (rng.random(200) < 0.2)
    said = [
        ["present" if one else "absent" for one in two] for two in zip(first, second, strict=True)
    ]
    assert cohen_kappa(said) == pytest.approx(metrics.cohen_kappa_score(first, second))
    assert cohen_kappa([["present", "present"]]) is None
    # Ten patients, fourteen raters, five categories: a published example, 0.210.
    counts = """0 0 0 0 14  0 2 6 4 2  0 0 3 5 6  0 3 9 2 0  2 2 8 1 1
    7 7 0 0 0  3 2 6 3 0  2 5 3 2 2  6 5 2 1 0  0 2 2 3 7"""
    assert fleiss_kappa(np.array(counts.split(), dtype=int).reshape(10, 5)) == pytest.approx(
        0.210, abs=5e-4
    )
    assert fleiss_kappa([(2, 0), (3, 0)]) is None


def test_a_ruling_of_a_reviewer_leaves_the_answer_that_agreement_is_about() -> None:
    answers = Answers()
    for who, word, mode in (
        ("Ann", "present", "ranked"),
        ("Ben", "absent", "ranked"),
        ("Ann", "absent", "ruling"),
    ):
        answers.take(given(who, "a", word, mode))
    (everybody, _) = agreement(answers, {})
    assert (everybody.pairs, everybody.same) == (1, 0)
    assert resolve(answers.votes("dog", "a").values()) == "absent"


def test_a_name_goes_to_a_second_device_when_the_first_agrees_or_is_away() -> None:
    time = 0.0
    names = ReviewerNames(clock=lambda: time)
    names.claim("first", "Ann")
    with pytest.raises(NameTakenError):
        names.claim("second", "Ann")
    assert names.ask("second", "Ann") == "waiting"
    assert names.state("first", "Ann") == {"mine": True, "asked": True}
    names.reply("first", "Ann", hand_over=False)
    assert names.ask("second", "Ann") == "refused"
    assert names.ask("second", "Ann") == "waiting"
    names.reply("first", "Ann", hand_over=True)
    names.claim("second", "Ann")
    assert names.lost("first", "Ann") is not None
    assert names.ask("first", "Ann") == "waiting"
    time = AWAY_S + 1
    assert names.ask("first", "Ann") == "given"


def test_disagreements_are_ruled_on_by_adjudicators_alone(audit: AuditFolder) -> None:
    review = Review(audit, adjudicators=["Cleo"])
    try:
        one = review.start("Ann")["classes"][0]
        page = review.page(column=one["number"], view="ranked", start=0, count=5, reviewer="Ann")
        pair, name = page["pairs"][0], one["name"]
        review.record("Ann", [answer_event(1, pair, name, "present")])
        review.record("Ben", [answer_event(2, pair, name, "absent")])
        found = review.disputes(start=0, count=10, reviewer="Cleo")
        assert (found["open"], found["pairs"][0]["image"]) == (1, pair["image"])
        ruling = {**answer_event(3, pair, name, "present"), "mode": "ruling"}
        with pytest.raises(ArgumentError, match="Only an adjudicator"):
            review.record("Ben", [ruling])
        assert review.record("Cleo", [ruling])["disputes"] == 0
        with pytest.raises(ArgumentError, match="Only an adjudicator may assign"):
            review.assign("Ben", {"people": {"Ben": {"share": 1}}})
        review.assign("Cleo", {"people": {"Ben": {"classes": [name]}, "Ann": {"share": 1}}})
        parts = {row["name"]: row["part"] for row in review.start("Ann")["classes"]}
        assert not parts[name]
        assert np.sum(list(parts.values())) == len(parts) - 1
        rows = list(csv.reader(io.StringIO(review.export("answers")[1].decode())))
        assert len(set(rows[0])) == len(rows[0])
        assert {len(row) for row in rows} == {len(rows[0])}
        assert sum("ruling" in row for row in rows) == 1
    finally:
        review.close()


def test_a_name_in_other_capitals_or_with_more_spaces_is_the_same_person(
    audit: AuditFolder,
) -> None:
    review = Review(audit, adjudicators=["Cleo  van  Dam"])
    try:
        one = review.start("Ann")["classes"][0]
        page = review.page(column=one["number"], view="ranked", start=0, count=1, reviewer="Ann")
        review.record("Ann", [answer_event(1, page["pairs"][0], one["name"], "present")])
        assert review.spelled("aNN") == "Ann"
        assert review.spelled("Anne") == "Anne"
        assert review.may_rule(review.spelled("cleo van dam"))
        assert review.spelled("ben", ["Ben"]) == "Ben"
    finally:
        review.close()


def test_work_and_decisions_are_given_to_people_whatever_their_capitals(
    audit: AuditFolder,
) -> None:
    review = Review(audit, adjudicators=["cleo"])
    try:
        one = review.start("Cleo")["classes"][0]
        page = review.page(column=one["number"], view="ranked", start=0, count=1, reviewer="Cleo")
        review.record("Cleo", [answer_event(1, page["pairs"][0], one["name"], "present")])
        assert review.may_rule(review.spelled("CLEO"))
        words = ["ann=" + one["name"], "ANN=30%", "CLEO"]
        Assignment.from_words(words, audit.table().classes).keep(review.store, "command line")
        plan = review.team("Cleo")["plan"]["people"]
        assert plan == {
            "ann": {"classes": [one["name"]], "share": 0.3},
            "Cleo": {"classes": [], "share": 0.7},
        }
        assert review.spelled("Ann") == "ann"
    finally:
        review.close()


def test_shares_that_were_rounded_leave_no_image_out() -> None:
    people = {name: {"share": 0.333} for name in ("Ann", "Ben", "Cleo")}
    plan = Assignment.parse({"people": people}, ["dog"])
    dealt = np.arange(10_000) / 10_000
    parts = [plan.mine(name, "dog", dealt) for name in people]
    assert np.array_equal(np.sum(parts, axis=0), np.ones(10_000))
    assert plan.remark == ""


def test_shares_that_do_not_add_up_are_said(
    audit: AuditFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Assignment.parse({"people": {"Ann": {"share": 0.3}, "Ben": {"share": 0.4}}}, ["dog"])
    assert "70%: nobody" in plan.remark
    assert "70%: nobody" in plan.as_dict()["remark"]
    more = Assignment.parse({"people": {"Ann": {"share": 0.8}, "Ben": {"share": 0.4}}}, ["dog"])
    assert "120%" in more.remark
    assert Assignment.parse({"people": {"Ann": {"classes": ["dog"]}}}, ["dog"]).remark == ""
    busy = socket.create_server(("127.0.0.1", 0))
    with busy:
        command = ["review", str(audit.path), "--assign", "Ann=30%", "--port"]
        assert main([*command, str(busy.getsockname()[1])]) == 2
    assert "--assign: The shares add up to 30%" in capsys.readouterr().out


@pytest.mark.parametrize("value", [1e400, 10**400, -(10**400), 1.5, "1", None], ids="abcdef")
def test_a_share_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(HilltopError, match="share must be"):
        Assignment.parse({"people": {"Ann": {"share": value}}}, ["dog"])


def test_a_person_has_one_part() -> None:
    people = {"Ann": {"share": 0.3}, " ann ": {"share": 0.7}}
    with pytest.raises(ArgumentError, match="'ann' is named twice"):
        Assignment.parse({"people": people}, ["dog"])


def test_a_page_of_disagreements_has_a_size(audit: AuditFolder) -> None:
    review = Review(audit)
    for count in (0, MOST_PAIRS + 1):
        with pytest.raises(ArgumentError, match="count must lie between 1 and"):
            review.disputes(start=None, count=count, reviewer="Ann")
    review.close()


def test_a_name_is_found_however_its_accents_are_written() -> None:
    names = pa.array([unicodedata.normalize("NFD", "Köln/1.jpg"), "b.jpg"])
    place = [unicodedata.normalize("NFD", "Café"), ""]
    about = Metadata(names, {"place": place})
    assert about.rows(unicodedata.normalize("NFC", "köln"), "image").tolist() == [0]
    assert about.rows("café", "place").tolist() == [0]


def test_metadata_that_contradict_themselves_are_refused(
    audit: AuditFolder, tmp_path: Path
) -> None:
    name, path = audit.table().images[0].as_py(), tmp_path / "about.csv"
    pairs = AuditPairs.read(audit)
    path.write_text(f"image,place\n{name},Rome\nelsewhere.jpg,Oslo\n{name},Rome\n")
    assert read_metadata(path, pairs).of(0) == {"place": "Rome"}
    path.write_text(f"image,place\n{name},Rome\n{name},Oslo\n")
    with pytest.raises(DataError, match=f"line 3.*{name}' has other cells in an earlier line"):
        read_metadata(path, pairs)


@pytest.mark.parametrize(
    ("column", "value"), [("text", "{"), ("text", "[]"), ("text", '{"people": {"A": 1}}')]
)
def test_an_assignment_that_somebody_else_wrote_is_a_sentence(
    audit: AuditFolder, column: str, value: str
) -> None:
    review = Review(audit)
    review.assign("Ann", {"people": {"Ann": {"share": 1}}})
    review.close()
    edit(audit, column, value)
    review = Review(audit)
    with pytest.raises(DataError, match="assignment that hilltop did not write"):
        review.start("Ann")
    review.close()


def test_an_answer_at_no_time_is_a_sentence(audit: AuditFolder) -> None:
    review = Review(audit)
    one = review.start("Ann")["classes"][0]
    page = review.page(column=one["number"], view="ranked", start=0, count=1, reviewer="Ann")
    review.record("Ann", [answer_event(1, page["pairs"][0], one["name"], "present")])
    review.close()
    edit(audit, "time", "yesterday")
    review = Review(audit)
    with pytest.raises(DataError, match="event 1 is not one that hilltop wrote"):
        review.team("Ann")
    review.close()


def edit(audit: AuditFolder, column: str, value: str) -> None:
    """Change the file of answers by hand, past its triggers."""
    file = sqlite3.connect(audit.decisions)
    file.execute("DROP TRIGGER never_changed")
    file.execute(f"UPDATE events SET {column} = ?", (value,))
    file.commit()
    file.close()


def test_a_port_that_does_not_exist_is_refused(
    audit: AuditFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", str(audit.path), "--port", "80000"]) == 2
    assert "65535" in capsys.readouterr().err


def test_answers_to_the_audit_before_are_taken_after_an_update(
    audit: AuditFolder, tmp_path: Path
) -> None:
    review = Review(audit)
    one = review.start("Ann")["classes"][0]
    page = review.page(column=one["number"], view="ranked", start=0, count=1, reviewer="Ann")
    review.close()
    event = {
        **answer_event(1, page["pairs"][0], one["name"], "present"),
        "time": "2026-01-31T10:00:00Z",
    }
    gone = {**event, "id": "2", "class": "no longer there"}
    content = {
        "kind": "hilltop answers",
        "audit": audit.created,
        "reviewer": "Dan",
        "events": [event, gone],
    }
    (tmp_path / "answers.json").write_text(json.dumps(content))
    about = json.loads(audit.about.read_text())
    about |= {"created": "later", "earlier": [audit.created]}
    audit.about.write_text(json.dumps(about))
    assert main(["review", str(audit.path), "--import", str(tmp_path / "answers.json")]) == 0
    review = Review(AuditFolder.read(audit.path))
    done = {person["name"]: person["answers"] for person in review.team("Ann")["people"]}
    review.close()
    assert done == {"Dan": 1, "Ann": 0}
