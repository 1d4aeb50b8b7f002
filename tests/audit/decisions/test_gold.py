"""Gold questions measure reviewers, look like all others, and change no label."""

from __future__ import annotations

from pathlib import Path

import pytest

import hilltop.audit
from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.apply import apply_decisions, read_answers
from hilltop.audit.decisions.gold import add_gold_questions, agreements, read_gold
from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.session import Review
from hilltop.errors import DataError
from tests.audit.made_up import write_candidates


@pytest.fixture
def with_gold(audit: AuditFolder) -> AuditFolder:
    """An audit whose labels are all sure, with gold questions."""
    labels = audit.table()
    names = labels.images.to_pylist()
    pairs = [
        (image, name, 0.1) for row, image in enumerate(names) for name in labels.labels_of(row)
    ]
    write_candidates(audit.suspects, pairs)
    add_gold_questions(audit, 40)
    return audit


def test_half_of_the_gold_questions_are_labels_and_half_surely_not(with_gold: AuditFolder) -> None:
    labels = with_gold.table()
    row_of = {image: row for row, image in enumerate(labels.images.to_pylist())}
    known = read_gold(with_gold)
    assert sorted(known.values()) == ["absent"] * 20 + ["present"] * 20
    for (name, image), word in known.items():
        assert (name in labels.labels_of(row_of[image])) == (word == "present")


def test_a_gold_label_looks_like_a_candidate_and_no_answer_strikes_it(
    with_gold: AuditFolder, tmp_path: Path
) -> None:
    (name, image), _ = next(one for one in read_gold(with_gold).items() if one[1] == "present")
    review = Review(with_gold)
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
    assert "agreement" not in reply  # how often one is right is kept from oneself
    assert reply["classes"][0]["absent"] == 0
    assert not list(read_answers(with_gold).all())
    assert apply_decisions(with_gold, tmp_path / "out.csv").struck == 0
    store = DecisionStore(with_gold.decisions)
    found = agreements(Answers.of(store), read_gold(with_gold))
    store.close()
    assert {who: one[:2] for who, one in found.items()} == {"Ann": (0, 1)}


def test_classes_that_miss_most_labels_come_first_and_earlier_ones_stay(
    with_gold: AuditFolder,
) -> None:
    first = read_gold(with_gold)
    labels = with_gold.table()
    classes = list(dict.fromkeys(name for name, _ in first))
    last = next(name for name in labels.classes[::-1] if name not in classes)
    images = labels.images.to_pylist()
    lacking = [image for row, image in enumerate(images) if last not in labels.labels_of(row)]
    write_candidates(
        with_gold.candidates,
        [
            (image, name, 0.9 if name == last else 0.1)
            for image in lacking
            for name in [*classes, last]
        ],
    )
    found = add_gold_questions(with_gold, 2, seed=1)
    assert {name for name, _ in found.keys() - first.keys()} == {last}
    assert found.keys() >= first.keys()
    assert read_gold(with_gold) == found


def test_without_sure_labels_there_are_no_gold_questions(audit: AuditFolder) -> None:
    with pytest.raises(DataError, match=r"does not say which labels are sure\. Run"):
        add_gold_questions(audit, 10)


def test_gold_questions_of_version_0_1_are_read_and_kept(with_gold: AuditFolder) -> None:
    known = read_gold(with_gold)
    with_gold.gold.rename(with_gold.path / "planted.csv")
    assert read_gold(with_gold) == known
    assert add_gold_questions(with_gold, 2, seed=5).items() >= known.items()


def test_the_old_name_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="add_gold_questions"):
        assert hilltop.audit.plant_pairs is add_gold_questions
