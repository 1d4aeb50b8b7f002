"""Queues ask for the right pairs, random samples are fair, and answers in a table come back."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hilltop.audit.decisions.apply import read_answers
from hilltop.audit.decisions.store import Answer, DecisionStore, now
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queues import build_queue, model_values, sample_pairs
from hilltop.cli.main import main
from hilltop.errors import ArgumentError, DataError


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, lines: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def test_the_queue_for_labels_is_ordered_by_probability(audit: AuditFolder) -> None:
    queue = build_queue(audit, "labels", 30)
    assert len(queue) == 30
    assert (np.diff(queue.probabilities) <= 0).all()


def test_every_named_class_is_asked_about(audit: AuditFolder) -> None:
    names = audit.table().classes
    whole = build_queue(audit, "labels", 10_000)
    high, low = int(whole.columns[0]), int(whole.columns[-1])
    queue = build_queue(audit, "labels", 6, classes=[names[high], names[low]])
    assert np.bincount(queue.columns, minlength=len(names))[[high, low]].tolist() == [3, 3]
    assert (np.diff(queue.probabilities) <= 0).all()
    best = whole.probabilities[whole.columns == low][:3]
    assert queue.probabilities[queue.columns == low].tolist() == best.tolist()
    alone = build_queue(audit, "labels", 10_000, classes=[names[high], names[low]])
    assert len(alone) == np.isin(whole.columns, [high, low]).sum()


def test_the_queue_for_the_model_asks_first_where_labels_are_few() -> None:
    probs = np.array([0.99, 0.98, 0.97, 0.5, 0.2, 0.05])
    columns = np.array([0, 0, 0, 1, 1, 1])
    fresh = model_values(probs, columns, np.array([100, 2]))
    assert np.argsort(-fresh).tolist() == [3, 4, 5, 0, 1, 2]
    after = model_values(probs, columns, np.array([2, 2]))
    assert np.argsort(-after).tolist() == [0, 1, 3, 2, 4, 5]


def test_the_queue_for_the_model_asks_all_classes_where_every_pair_is_improbable() -> None:
    probs = np.concatenate([np.linspace(0.09, 0.06, 40), np.linspace(0.02, 0.015, 40)])
    columns = np.repeat([0, 1], 40)
    values = model_values(probs, columns, np.array([5, 5]))
    asked = columns[np.argsort(-values)[:20]]
    assert 2 <= (asked == 1).sum() < (asked == 0).sum()


def test_answers_move_the_queue_for_the_model_to_other_classes(audit: AuditFolder) -> None:
    labels = audit.table()
    before = build_queue(audit, "model", 5)
    column = int(before.columns[0])
    store = DecisionStore(audit.decisions)
    asked = build_queue(audit, "labels", 60, classes=[labels.classes[column]])
    store.add(
        Answer(f"e{at}", f"a{at}", "Ann", now(), labels.images[row].as_py(),
               labels.classes[column], "absent", "ranked", 0.5)
        for at, row in enumerate(asked.rows.tolist())
    )  # fmt: skip
    store.close()
    assert column not in build_queue(audit, "model", 5).columns


def test_an_audit_without_suspects_says_so(audit: AuditFolder) -> None:
    with pytest.raises(DataError, match=r"has no list of labels that may be wrong. Run"):
        build_queue(audit, "wrong", 3)


def test_a_random_sample_draws_each_pair_as_often_as_it_says() -> None:
    probs = np.concatenate([np.full(40, 0.5), np.full(400, 0.002), np.ones(10)])
    rng = np.random.default_rng(0)
    hits = np.zeros(len(probs))
    for _ in range(2000):
        drawn, inclusion = sample_pairs(probs, 60, rng)
        assert len(drawn) == 60
        assert len(set(drawn.tolist())) == 60
        hits[drawn] += 1
    spread = np.sqrt(inclusion * (1 - inclusion) / 2000)
    assert (np.abs(hits / 2000 - inclusion) <= 5 * spread + 1e-9).all()
    assert inclusion.sum() == pytest.approx(60)
    assert inclusion.min() > 0


def test_a_sample_of_everything_is_everything() -> None:
    drawn, inclusion = sample_pairs(np.array([0.1, 0.0, 1.0]), 10, np.random.default_rng(0))
    assert sorted(drawn.tolist()) == [0, 1, 2]
    assert inclusion == pytest.approx(1.0)


def test_the_weighted_sample_counts_missing_labels_without_bias() -> None:
    rng = np.random.default_rng(1)
    probs = rng.random(3000) ** 4
    missing = rng.random(3000) < 0.5 * probs  # half as many as the probabilities say
    found = []
    for _ in range(400):
        drawn, inclusion = sample_pairs(probs, 200, rng)
        found.append((missing[drawn] / inclusion[drawn]).sum())
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(missing.sum(), abs=4 * error)


def test_an_unknown_purpose_is_an_error(audit: AuditFolder) -> None:
    with pytest.raises(ArgumentError, match=r"for must be one of 'model', .* but got 'fun'"):
        build_queue(audit, "fun", 3)  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize("purpose", ["model", "labels", "measure"])
def test_a_queue_goes_out_and_its_answers_come_back(
    audit: AuditFolder, tmp_path: Path, purpose: str
) -> None:
    out = tmp_path / "queue.csv"
    words = ["queue", str(audit.path), "--for", purpose, "--number", "12", "--out", str(out)]
    assert main(words) == 0
    lines = read(out)
    assert len(lines) == 12
    assert ("sampled_with" in lines[0]) == (purpose == "measure")
    said = ["yes", "no", "unsure", ""] * 3
    write(out, [line | {"answer": word} for line, word in zip(lines, said, strict=True)])
    for _ in range(2):  # a second time changes nothing
        assert main(["review", str(audit.path), "--import", str(out)]) == 0
    answers = {(image, name): votes for image, name, votes in read_answers(audit).all()}
    assert len(answers) == 9
    meant = {"yes": "present", "no": "absent", "unsure": "unsure"}
    for line, word in zip(lines, said, strict=True):
        votes = answers.get((line["image"], line["class"]), {})
        assert [vote.answer for vote in votes.values()] == ([meant[word]] if word else [])
        assert list(votes) == (["queue"] if word else [])
    assert main(words) == 2  # the file is there already
    assert main([*words, "--force"]) == 0
    again = {(line["image"], line["class"]) for line in read(out)}
    assert not again & set(answers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "yess"}, "line 2: answer must be yes, no or unsure, but got 'yess'"),
        ({"image": "nowhere"}, "line 2: image 'nowhere' is not in this audit"),
        ({"class": "sofa"}, "line 2: class 'sofa' is not in the class list"),
        ({"reviewer": "x" * 99}, "line 2: The name of a reviewer must have at most"),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(
    audit: AuditFolder,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, str],
    message: str,
) -> None:
    out = tmp_path / "answers.csv"
    assert main(["queue", str(audit.path), "--number", "2", "--out", str(out)]) == 0
    lines = [line | {"answer": "yes", "reviewer": "Ann"} for line in read(out)]
    write(out, [lines[0] | change, lines[1]])
    assert main(["review", str(audit.path), "--import", str(out)]) == 1
    assert message in capsys.readouterr().err
    assert not list(read_answers(audit).all())


def test_a_table_without_answers_is_named(
    audit: AuditFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "answers.csv"
    out.write_text("image,class\na,b\n")
    assert main(["review", str(audit.path), "--import", str(out)]) == 1
    assert "line 1: the column 'answer' is missing" in capsys.readouterr().err
