"""Counts of a class follow its answers, one pair at a time."""

from __future__ import annotations

import random

import pytest

from hilltop.audit.decisions.answers import Answers, differ, resolve
from hilltop.audit.decisions.store import Event, Undo
from hilltop.audit.review.summaries import ClassProgress
from hilltop.data.review_record import AnswerWord, Mode
from tests.audit.decisions.test_store import said

WORDS: tuple[AnswerWord, ...] = ("present", "absent", "unsure")
MODES: tuple[Mode, ...] = ("ranked", "random")


def followed(*events: Event) -> tuple[Answers, ClassProgress]:
    answers, progress = Answers(), ClassProgress("dog")
    for event in events:
        for _, image in answers.take(event):
            progress.update(answers, image)
    return answers, progress


def some_events(seed: int) -> list[Event]:
    """Answers of three reviewers to a few images, some changed and some taken back."""
    rng = random.Random(seed)
    events: list[Event] = []
    for number in range(120):
        who, image = rng.choice(["Ann", "Ben", "Cid"]), f"{rng.randrange(9)}.jpg"
        mode = rng.choice(MODES)
        events.append(said(number, rng.choice(WORDS), who=who, image=image, mode=mode))
        if rng.random() < 0.3:
            taken_back = rng.randrange(number + 1)
            events.append(Undo(f"u{number}", f"a{taken_back}", "Ann", "now"))
    return events


@pytest.mark.parametrize("seed", range(5))
def test_running_counts_are_those_of_all_answers_that_hold(seed: int) -> None:
    answers, progress = followed(*some_events(seed))
    votes = [votes for _, votes in answers.pairs("dog")]
    outcomes = [resolve(one.values()) for one in votes]
    ranked = [resolve(one.values()) for _, one in answers.pairs("dog", mode="ranked")]
    for word in (*WORDS, "disputed"):
        assert progress.count("all", word) == outcomes.count(word)
        assert progress.count("ranked", word) == ranked.count(word)
    assert progress.count("differ") == sum(differ(one.values()) for one in votes)
    drawn = answers.sample("dog")
    assert progress.count("random", "present") == drawn.present
    assert progress.count("random", "absent") == drawn.absent
    for who in ("Ann", "Ben", "Cid"):
        assert progress.count("by", who) == sum(who in one for one in votes)
    told = [
        (vote.time, vote.answer == "present")
        for _, one in answers.pairs("dog", mode="ranked")
        for vote in one.values()
        if vote.answer != "unsure"
    ]
    assert progress.recent[0] == sum(found for _, found in sorted(told)[-20:])


def test_an_answer_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, progress, looks = Answers(), ClassProgress("dog"), []
    plain = Answers.votes

    def counted(self: Answers, *args: str, mode: Mode | None = None) -> object:
        looks.append(args)
        return plain(self, *args, mode=mode)

    monkeypatch.setattr(Answers, "votes", counted)
    for number in range(200):
        before = len(looks)
        for _, image in answers.take(said(number, "present", image=f"{number}.jpg")):
            progress.update(answers, image)
        assert len(looks) - before <= 3


def test_a_class_is_not_worthwhile_once_the_last_twenty_answers_found_hardly_anything() -> None:
    early = [said(n, "present", image=f"{n}.jpg") for n in range(30)]
    late = [said(100 + n, "absent", image=f"late {n}.jpg") for n in range(19)]
    assert followed(*early, *late[:18])[1].worthwhile
    _, progress = followed(*early, *late)
    assert (progress.recent, progress.worthwhile) == ((1, 20), False)
    assert (progress.count("ranked", "present"), progress.count("ranked", "absent")) == (30, 19)
