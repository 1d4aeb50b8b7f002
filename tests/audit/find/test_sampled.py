"""Weighted samples count missing labels without bias, even where the audit is wrong."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.queues import sample_pairs
from hilltop.cli.main import main
from hilltop.missing import Interval
from hilltop.missing.answers import weighted_total


def test_the_total_is_unbiased_and_its_interval_covers() -> None:
    rng = np.random.default_rng(0)
    probs = rng.random(4000) ** 5
    missing = rng.random(4000) < np.minimum(1, 0.4 * probs + 0.01)  # the audit is quite wrong
    found = []
    for _ in range(300):
        drawn, inclusion = sample_pairs(probs, 400, rng)
        total = weighted_total(
            float(probs.sum()), probs[drawn], missing[drawn].astype(float), inclusion[drawn]
        )
        found.append(Interval.of_normal(*total))
    totals = np.array([one.value for one in found])
    assert totals.mean() == pytest.approx(missing.sum(), abs=4 * totals.std() / np.sqrt(300))
    covered = np.mean([one.low <= missing.sum() <= one.high for one in found])
    assert 0.82 < covered < 0.99


def test_the_command_estimates_from_answers_to_a_part_of_the_sample(
    audit: AuditFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "queue.csv"
    words = ["queue", str(audit.path), "--for", "measure", "--number", "200", "--out", str(out)]
    assert main(words) == 0
    with out.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))[:150]
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*lines[0], "answer"])
        writer.writeheader()
        writer.writerows(line | {"answer": "no"} for line in lines)
    assert main(["review", str(audit.path), "--import", str(out)]) == 0
    estimates = audit.path / "estimates.csv"
    estimates.write_text("class,labelled,missing,low,high,source\n")
    assert main(["estimate", str(audit.path)]) == 0
    said = capsys.readouterr().out
    assert "weighted sample (150 pairs, all classes): " in said
