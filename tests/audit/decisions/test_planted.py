"""Planted pairs measure reviewers, look like all others, and change no label."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.apply import apply_decisions, read_answers
from hilltop.audit.decisions.planted import agreements, plant_pairs, read_planted
from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.session import Review
from hilltop.errors import DataError
from tests.audit.made_up import write_candidates


@pytest.fixture
def planted(audit: AuditFolder) -> AuditFolder:
    """An audit whose labels are all sure, with pairs planted."""
    labels = audit.table()
    names = labels.images.to_pylist()
    pairs = [
        (image, name, 0.1) for row, image in enumerate(names) for name in labels.labels_of(row)
    ]
    write_candidates(audit.suspects, pairs)
    plant_pairs(audit, 40)
    return audit


def test_half_of_the_planted_pairs_are_labels_and_half_surely_not(planted: AuditFolder) -> None:
    labels = planted.table()
    row_of = {image: row for row, image in enumerate(labels.images.to_pylist())}
    known = read_planted(planted)
    assert sorted(known.values()) == ["absent"] * 20 + ["present"] * 20
    for (name, image), word in known.items():
        assert (name in labels.labels_of(row_of[image])) == (word == "present")


def test_a_planted_label_looks_like_a_candidate_and_no_answer_strikes_it(
    planted: AuditFolder, tmp_path: Path
) -> None:
    (name, image), _ = next(one for one in read_planted(planted).items() if one[1] == "present")
    review = Review(planted)
    column = review.labels.classes.index(name)
    asked = {"column": column, "view": "ranked", "start": 0, "count": 48, "reviewer": "Ann"}
    page = review.page(**asked)
    pair = next(one for one in page["pairs"] if one["image"] == image)
    beside = page["pairs"][page["pairs"].index(pair) - 1]
    assert name not in pair["labels"]
    assert pair["probability"] == beside["probability"]
    assert len(page["pairs"]) > page["end"] - page["start"]
    event = {"id": "a", "action": "a", "image": image, "row": pair["row"], "class": name}
    reply = review.record("Ann", [{**event, "answer": "absent", "mode": "ranked"}])
    review.close()
    assert (reply["agreement"]["agreed"], reply["agreement"]["answered"]) == (0, 1)
    assert reply["classes"][0]["absent"] == 0
    assert not list(read_answers(planted).all())
    assert apply_decisions(planted, tmp_path / "out.csv").struck == 0
    store = DecisionStore(planted.decisions)
    found = agreements(Answers.of(store), read_planted(planted))
    store.close()
    assert [(one.reviewer, one.agreed, one.answered) for one in found] == [("Ann", 0, 1)]


def test_classes_that_miss_most_labels_come_first_and_what_was_planted_stays(
    planted: AuditFolder,
) -> None:
    first = read_planted(planted)
    labels = planted.table()
    classes = list(dict.fromkeys(name for name, _ in first))
    last = next(name for name in labels.classes[::-1] if name not in classes)
    images = labels.images.to_pylist()
    lacking = [image for row, image in enumerate(images) if last not in labels.labels_of(row)]
    write_candidates(
        planted.candidates,
        [
            (image, name, 0.9 if name == last else 0.1)
            for image in lacking
            for name in [*classes, last]
        ],
    )
    found = plant_pairs(planted, 2, seed=1)
    assert {name for name, _ in found.keys() - first.keys()} == {last}
    assert found.keys() >= first.keys()
    assert read_planted(planted) == found


def test_without_sure_labels_nothing_is_planted(audit: AuditFolder) -> None:
    with pytest.raises(DataError, match=r"does not say which labels are sure\. Run"):
        plant_pairs(audit, 10)
