"""A plan of ``hilltop evaluate`` as a queue of the review page, and its answers back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queues import keep_plan
from hilltop.audit.review.session import Review
from hilltop.cli.main import main
from hilltop.data.scores import ScoreTable
from hilltop.errors import DataError


def test_a_plan_is_asked_in_the_page_and_its_answers_are_evaluated(
    audit: AuditFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = audit.table()
    probs = np.random.default_rng(0).random((len(table), len(table.classes)))
    ScoreTable(table.images, table.classes, probs).save(tmp_path / "scores.npy")
    words = ["evaluate", str(tmp_path / "scores.npy"), str(audit.labels)]
    words += ["--unlisted", "unknown", "--incomplete"]
    ask = tmp_path / "ask.csv"
    assert main([*words, "--plan", "12", "--out", str(ask)]) == 0
    assert keep_plan(audit, ask) == keep_plan(audit, ask) == 12
    assert len(audit.plans) == 1

    review = Review(audit)
    try:
        assert "planned" in review.start("Ann")["views"]
        asked = _answer_all(review)
    finally:
        review.close()
    with ask.open() as file:
        assert asked == {(row["image"], row["class"]) for row in csv.DictReader(file)}
    capsys.readouterr()
    assert main([*words, "--answers", str(audit.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"] == 12


def _answer_all(review: Review) -> set[tuple[str, str]]:
    """Say yes to every pair of the view, and return the pairs."""
    asked = set()
    for column, name in enumerate(review.labels.classes):
        page = review.page(column=column, view="planned", start=0, count=50, reviewer="Ann")
        for pair in page["pairs"]:
            assert pair["probability"] is None  # it would sway the reviewer
            asked.add((pair["image"], name))
            key = f"{len(asked):08}"
            event = {"id": key, "action": key, "row": pair["row"], "image": pair["image"]}
            review.record("Ann", [event | {"class": name, "answer": "present", "mode": "ranked"}])
    return asked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,class\n", "the column 'sampled_with' is missing"),
        ("image,class,sampled_with\nnowhere.jpg,x,0.5\n", "image 'nowhere.jpg' is not in this"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(
    audit: AuditFolder, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "ask.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        keep_plan(audit, tmp_path / "ask.csv")
    assert not audit.plans


def test_answers_of_an_audit_without_a_plan_are_refused(audit: AuditFolder) -> None:
    from hilltop.audit.review.queues import answered_plans

    with pytest.raises(DataError, match="was never given a plan"):
        answered_plans(audit)


def test_a_plan_never_takes_the_place_of_another(audit: AuditFolder, tmp_path: Path) -> None:
    table, plan = audit.table(), tmp_path / "plan.csv"
    labels = {(row, name) for row in range(len(table)) for name in table.labels_of(row)}
    name = table.classes[0]
    free = [row for row in range(len(table)) if (row, name) not in labels]
    for row in free[:3]:
        image = table.images[row].as_py()
        plan.write_text(f"image,class,sampled_with\n{image},{name},0.5\n")
        keep_plan(audit, plan)
    first, _, last = audit.plans
    before = last.read_text()
    first.unlink()
    plan.write_text(f"image,class,sampled_with\n{table.images[free[3]].as_py()},{name},0.5\n")
    keep_plan(audit, plan)
    assert last.read_text() == before
    assert len(audit.plans) == 3
