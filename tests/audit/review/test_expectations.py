"""What the page expects to be found is what the audit said, until answers say more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilltop.audit import find_missing_labels
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.find.estimate import Estimate, write_estimates
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.session import Review
from hilltop.audit.review.static_page import write_static_review
from hilltop.audit.review.summaries import Expectations
from hilltop.missing import Interval


def estimate(folder: AuditFolder, *, missing: float, high: float, wrong: float = 0.0) -> None:
    classes = folder.table().classes
    said = [
        Estimate(name, 10, Interval(missing, 0.0, high), "model", 0.0, wrong) for name in classes
    ]
    write_estimates(said, folder.path / "estimates.csv")


def started(folder: AuditFolder) -> Any:
    review = Review(folder)
    try:
        return review.start("Ann")["classes"]
    finally:
        review.close()


def test_the_page_expects_what_the_estimates_say(audit: AuditFolder) -> None:
    estimate(audit, missing=7.5, high=12.0, wrong=2.5)
    for one in started(audit):
        assert (one["expected"], one["most"], one["wrong"]["expected"]) == (7.5, None, 2.5)


def test_where_the_audit_sees_nothing_missing_the_page_expects_nothing(audit: AuditFolder) -> None:
    estimate(audit, missing=0.0, high=4.2)
    for one in started(audit):
        assert (one["expected"], one["most"]) == (0, 4.2)
        assert one["listed"] > 0  # an order of classes there is


def test_samples_of_people_come_before_what_the_model_says(audit: AuditFolder) -> None:
    estimate(audit, missing=7.5, high=12.0, wrong=2.5)
    name = audit.table().classes[1]
    path = audit.path / "estimates.csv"
    path.write_text(path.read_text() + f"{name},10,30.0,20.0,40.0,sample,0.0\n")
    table = audit.table()
    said = Expectations.read(audit, table, CandidateIndex.read(audit, table))
    assert said.missing[:3].tolist() == [7.5, 30.0, 7.5]
    assert said.wrong[1] == 2.5


def test_an_audit_without_estimates_adds_up_its_probabilities(audit: AuditFolder) -> None:
    table = audit.table()
    index = CandidateIndex.read(audit, table)
    said = Expectations.read(audit, table, index)
    assert said.missing == pytest.approx([index.expected(at) for at in range(len(table.classes))])
    assert said.factor(0) == pytest.approx(1)


@pytest.mark.parametrize("missing", [0.0, 6.0])
def test_answers_change_what_is_expected(audit: AuditFolder, missing: float) -> None:
    estimate(audit, missing=missing, high=9.0)
    review = Review(audit)
    try:
        review.ranking.directions = np.zeros((len(review.labels), 1), dtype=np.float32)
        review.ranking._known = lambda _: (np.arange(20), np.ones(20, dtype=bool))
        review.ranking.learn(0)
        one = review.start("Ann")["classes"][0]
    finally:
        review.close()
    assert one["most"] is None
    assert one["expected"] > 20


def test_the_page_in_a_file_says_the_same(audit: AuditFolder, tmp_path: Path) -> None:
    estimate(audit, missing=0.0, high=4.2)
    write_static_review(audit, tmp_path / "review.html", top=25)
    text = (tmp_path / "review.html").read_text(encoding="utf-8")
    start = text.index('id="review-data">') + len('id="review-data">')
    data = json.loads(text[start : text.index("</script>", start)])
    assert {(one["expected"], one["most"]) for one in data["classes"]} == {(0.0, 4.2)}
    estimate(audit, missing=1000.0, high=2000.0)
    write_static_review(audit, tmp_path / "review.html", top=25)
    text = (tmp_path / "review.html").read_text(encoding="utf-8")
    data = json.loads(text[start : text.index("</script>", start)])
    assert all(one["expected"] == len(one["pairs"]) for one in data["classes"])


def test_an_audit_that_sees_nothing_missing_still_ranks() -> None:
    rng = np.random.default_rng(0)
    true = rng.random((600, 4)) < 0.3
    features = true @ rng.standard_normal((4, 8)) * 3 + rng.standard_normal((600, 8))
    found = find_missing_labels(true.astype(int), features=features)
    assert found.model.kind == "none"
    assert found.missing.value == 0
    assert found.candidates.probabilities().sum() == pytest.approx(true.sum() / 9, rel=0.05)
