"""The page learns from answers, keeps still what was shown, and asks about labels too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hilltop.audit.decisions.apply import apply_decisions
from hilltop.audit.decisions.store import Answer, now
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.ranking import (
    EVERY,
    LiveRanking,
    find_leaders,
    learn_from_answers,
    put_together,
)
from hilltop.audit.review.session import Review
from hilltop.errors import ArgumentError
from tests.audit.made_up import write_candidates


def test_without_answers_nothing_changes() -> None:
    probs = np.array([0.1, 0.6, 1.0, 0.0], dtype=np.float32)
    nothing = np.array([], dtype=np.int64)
    after = learn_from_answers(np.ones((4, 3), np.float32), probs, nothing, nothing.astype(bool))
    assert after == pytest.approx(probs, abs=1e-5)


def test_answers_that_contradict_sure_probabilities_are_believed() -> None:
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((400, 32)).astype(np.float32)
    probs = np.linspace(0.99999, 0.98, 400, dtype=np.float32)
    answered = np.arange(300)
    after = learn_from_answers(directions, probs, answered, np.zeros(300, dtype=bool))
    assert after[300:].mean() < 0.2


def test_similar_images_follow_and_others_do_not() -> None:
    rng = np.random.default_rng(0)
    kind = rng.random(600) < 0.3
    directions = rng.standard_normal((600, 16)).astype(np.float32)
    directions[:, 0] = np.where(kind, 1.5, -0.6)
    probs = np.full(600, 0.09, dtype=np.float32)
    answered = np.concatenate([np.flatnonzero(kind)[:15], np.flatnonzero(~kind)[:15]])
    after = learn_from_answers(directions, probs, answered, kind[answered])
    fresh = np.setdiff1d(np.arange(600), answered)
    assert after[fresh][kind[fresh]].mean() > 3 * after[fresh][~kind[fresh]].mean()


def test_what_was_shown_stays_and_the_rest_is_ranked_anew() -> None:
    rng = np.random.default_rng(1)
    directions = rng.standard_normal((200, 8)).astype(np.float32)
    truth = directions[:, 0] > 0
    probs = np.sort(rng.random(200).astype(np.float32) * 0.5)[::-1]
    index = CandidateIndex(np.arange(200, dtype=np.int32), probs, np.array([0, 200]))
    ranking = LiveRanking(index, directions, lambda _: (np.arange(40), truth[:40]))
    ranking.show(0, 60)
    ranking.learn(0)
    order = ranking.order(0)
    assert (order[:60] == np.arange(60)).all()
    assert ranking.probabilities(0)[order[:60]] == pytest.approx(probs[:60])
    assert sorted(order) == list(range(200))
    assert (np.diff(ranking.probabilities(0)[order[60:]]) <= 0).all()
    assert truth[order[60:100]].mean() > truth[60:100].mean() + 0.15
    ranking.close()


def test_what_is_expected_follows_the_answers() -> None:
    probs = np.full(100, 0.1, dtype=np.float32)
    index = CandidateIndex(np.arange(100, dtype=np.int32), probs, np.array([0, 100]))
    directions = np.zeros((100, 2), dtype=np.float32)
    ranking = LiveRanking(index, directions, lambda _: (np.arange(30), np.ones(30, dtype=bool)))
    assert ranking.learned(0) is None
    ranking.learn(0)
    found, still = ranking.learned(0) or (0, 0)
    assert found == 30
    assert 70 * 0.2 < still < 70
    ranking.close()


@pytest.fixture
def review(audit: AuditFolder) -> Iterator[Review]:
    labels = audit.table()
    names = labels.images.to_pylist()
    pairs = [
        (names[row], name, 0.3) for row in range(len(labels)) for name in labels.labels_of(row)
    ]
    write_candidates(audit.suspects, pairs)
    rng = np.random.default_rng(0)
    values = rng.standard_normal((len(labels), 6)).astype(np.float16)
    np.savez(audit.directions, rows=np.arange(len(labels)), values=values)
    opened = Review(audit)
    yield opened
    opened.close()


def answer(review: Review, page: dict[str, Any], places: range, word: str) -> dict[str, Any]:
    name = page["class"]["name"]
    events = [
        {"id": f"{name}{place}{word}", "action": f"{name}{place}{word}", "class": name,
         "answer": word, "mode": "ranked", "row": page["pairs"][place]["row"],
         "image": page["pairs"][place]["image"]}
        for place in places
    ]  # fmt: skip
    return review.record("Ann", events)


def page_of(review: Review, view: Any = "ranked", start: int | None = 0) -> dict[str, Any]:
    return review.page(column=0, view=view, start=start, count=24, reviewer="Ann")


def test_answers_never_move_what_a_page_has_shown(review: Review) -> None:
    page = page_of(review)
    images = [pair["image"] for pair in page["pairs"]]
    answer(review, page, range(EVERY), "present")
    review.ranking.close()  # waits for what is learned in the background
    assert [pair["image"] for pair in page_of(review)["pairs"]] == images
    first = page["pairs"][:1] + page_of(review)["pairs"][:1]
    assert first[0]["probability"] == first[1]["probability"]
    behind = page_of(review, start=24)["pairs"]
    assert not {pair["image"] for pair in behind} & set(images)
    everything = review.index.count(0)
    assert page["total"] == everything


def test_labels_are_asked_about_apart_from_missing_ones(review: Review) -> None:
    page = page_of(review, "wrong")
    name = page["class"]["name"]
    assert all(name in pair["labels"] for pair in page["pairs"])
    answer(review, page, range(1), "absent")
    (summary,) = answer(review, page, range(1, 2), "present")["classes"]
    assert (summary["wrong"]["struck"], summary["wrong"]["right"]) == (1, 1)
    assert (summary["present"], summary["absent"], summary["mine"]) == (0, 0, 0)
    assert page_of(review, "wrong", None)["pairs"][1]["answer"] == "present"


def test_struck_labels_are_gone_from_the_corrected_file(review: Review) -> None:
    page = page_of(review, "wrong")
    answer(review, page, range(2), "absent")
    done = apply_decisions(review.folder, review.folder.path / "new.csv")
    assert done.struck == 2


def test_a_label_that_is_no_suspect_cannot_be_answered(audit: AuditFolder) -> None:
    opened = Review(audit)
    labels = audit.table()
    row = next(row for row in range(len(labels)) if labels.labels_of(row))
    name = labels.labels_of(row)[0]
    event = {"id": "1", "action": "1", "class": name, "answer": "absent", "mode": "ranked",
             "row": row, "image": labels.images[row].as_py()}  # fmt: skip
    with pytest.raises(ArgumentError, match="is not a candidate of this audit"):
        opened.record("Ann", [event])
    assert "wrong" not in opened.start("Ann")["views"]
    opened.close()


def test_undo_does_not_reach_into_an_earlier_session(review: Review) -> None:
    pairs = page_of(review)["pairs"]
    name = page_of(review)["class"]["name"]
    times = ["2026-01-31T12:00:00+00:00", now()]
    review.store.add(
        [
            Answer(f"e{n}", f"a{n}", "Ann", time, pairs[n]["image"], name, "present", "ranked", 0.5)
            for n, time in enumerate(times)
        ]
    )
    assert [one["action"] for one in review.start("Ann")["undoable"]] == ["a1"]


def test_a_class_with_fewer_labels_is_worth_more(review: Review) -> None:
    classes = review.start("Ann")["classes"]
    labelled = {one["name"]: 0 for one in classes}
    for row in range(len(review.labels)):
        for name in review.labels.labels_of(row):
            labelled[name] += 1
    counts = [labelled[one["name"]] for one in classes]
    worth = [one["worth"] for one in classes]
    assert all(value > 0 for value in worth)
    assert np.corrcoef(np.log(np.maximum(counts, 1)), np.log(worth))[0, 1] < 0


def test_near_duplicates_are_put_together_and_others_stay_where_they_are() -> None:
    rng = np.random.default_rng(0)
    some = rng.standard_normal((6, 32)).astype(np.float32)
    some[4] = some[1] + 0.05 * rng.standard_normal(32)
    some[5] = 0  # no features: like nothing else
    leaders = find_leaders(some)
    assert leaders.tolist() == [0, 1, 2, 3, 1, 5]
    assert put_together(np.arange(6), leaders).tolist() == [0, 1, 4, 2, 3, 5]


def test_a_class_that_is_answered_in_full_is_worth_least(review: Review) -> None:
    name = review.labels.classes[0]
    events = []
    for number, row in enumerate(review.index.class_rows(0).tolist()):
        image = review.labels.images[row].as_py()
        events.append(
            Answer(f"f{number}", f"g{number}", "Ann", now(), image, name, "absent", "ranked", 0.5)
        )
    review.store.add(events)
    again = Review(review.folder)
    try:
        worth = {one["name"]: one["worth"] for one in again.start("Ann")["classes"]}
    finally:
        again.close()
    assert worth.pop(name) == 0 < min(worth.values())


def test_what_was_answered_before_is_learned_when_somebody_comes(review: Review) -> None:
    column = 0
    page = review.page(column=column, view="ranked", start=0, count=EVERY, reviewer="Ann")
    name = page["class"]["name"]
    events = [
        Answer(f"{at}", f"{at}", "Ben", now(), pair["image"], name, "present", "ranked", 0.5)
        for at, pair in enumerate(page["pairs"])
    ]
    review.store.add(events)  # as an import does, or the server of yesterday
    assert review.ranking.learned(column) is None
    review.start("Ann")
    review.ranking.close()
    assert review.ranking.learned(column) is not None
