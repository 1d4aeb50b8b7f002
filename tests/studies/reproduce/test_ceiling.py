"""The script that asks how much can be won back runs on small data, and its ends are right."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.losses import bce
from hilltop.training import Recipe, fit_head
from tests.processes import run

FOLDER = Path(__file__).parents[3] / "reproduction"
ROWS, FEATURES, CLASSES = 400, 16, 4


def write_set(path: Path) -> None:
    """Features in which every class has a direction of its own, and complete labels."""
    rng = np.random.default_rng(0)
    true = rng.random((ROWS, CLASSES)) < 0.4
    directions = rng.standard_normal((CLASSES, FEATURES))
    values = true @ directions + rng.standard_normal((ROWS, FEATURES))
    np.savez(path, X=values.astype(np.float32), Y=true.astype(np.uint8))


def values_of(path: Path) -> dict[str, float]:
    with path.open(newline="") as file:
        return {row["who"]: float(row["mAP"]) for row in csv.DictReader(file)}


@pytest.mark.slow
def test_whoever_has_all_answers_is_as_good_as_complete_labels(tmp_path: Path) -> None:
    write_set(tmp_path / "drawn.npz")
    options = ["drawn.npz", "--own-recipe", "--ways", "r1", "--seeds", "0", "--out", "answers.csv"]
    lines = ["bce", "auto", "labels 30", "labels 1200", "model 1200", "model 1200 in 2"]
    lines += ["told", "complete"]
    run(FOLDER / "ceiling.py", *options, "--lines", ",".join(lines), folder=tmp_path)
    values = values_of(tmp_path / "answers.csv")
    assert list(values) == lines
    for everything in ("labels 1200", "model 1200", "model 1200 in 2"):
        assert values[everything] == pytest.approx(values["complete"], abs=0.02)
    assert values["bce"] < values["told"] < values["complete"]
    printed = run(FOLDER / "ceiling.py", *options, "--lines", ",".join(lines), folder=tmp_path)
    assert printed == ""  # nothing is made twice


def test_heads_trained_together_are_those_trained_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    from heads_together import Task, own_recipe, train_side_by_side

    rng = np.random.default_rng(1)
    true = rng.random((ROWS, CLASSES)) < 0.3
    values = true @ rng.standard_normal((CLASSES, FEATURES)) + rng.standard_normal((ROWS, FEATURES))
    features, targets = torch.from_numpy(values).float(), torch.from_numpy(true).float()
    others = {"all": targets, "half": targets * (torch.arange(ROWS) % 2).unsqueeze(1)}
    heads = [
        (Task(one, torch.ones_like(one)), own_recipe(features, one, 0)) for one in others.values()
    ]
    together = train_side_by_side(features, features, heads, seed=0)
    for one, logits in zip(others.values(), together, strict=True):
        alone = fit_head(
            features,
            lambda rows, one=one: (one[rows], None),
            bce(reduction="sum"),
            classes=CLASSES,
            seed=0,
            recipe=Recipe(newton=False),
        ).head
        with torch.no_grad():
            assert torch.allclose(alone(features), logits, atol=0.02)
