"""The estimate that stands beside scores on validation labels that may be incomplete."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hilltop.data import State, assemble, write_labels
from hilltop.data.scores import ScoreTable
from hilltop.metrics import mean_average_precision
from hilltop.training.incomplete_validation import estimated_map
from hilltop.training.run_folder import RunFolder


def finished_run(
    path: Path, *, images: int = 400, unlisted: State = State.UNKNOWN
) -> tuple[RunFolder, float, float]:
    """A folder with validation labels and scores; the true mAP, and that by labels as they are."""
    rng = np.random.default_rng(0)
    logits = rng.normal(-2, 3, (images, 4))
    probs = 1 / (1 + np.exp(-logits))
    true = rng.random(logits.shape) < probs
    kept = true & (rng.random(logits.shape) < 0.5)
    folder = RunFolder(path)
    names = [f"{row}.jpg" for row in range(images)]
    table = assemble(names, list("abcd"), *kept.nonzero(), State.PRESENT, unlisted=unlisted)
    write_labels(table, folder.val_labels)
    ScoreTable(pa.array(names), tuple("abcd"), probs.astype(np.float32)).save(folder.val_scores)
    return folder, mean_average_precision(probs, true), mean_average_precision(probs, kept)


def test_the_estimate_is_near_the_truth_where_the_labels_are_not(tmp_path: Path) -> None:
    folder, true, naive = finished_run(tmp_path)
    found = estimated_map(folder)
    assert found is not None
    assert naive < found.low < true < found.high


@pytest.mark.parametrize("kind", [{"unlisted": State.ABSENT}, {"images": 50}])
def test_complete_or_few_labels_are_left_alone(tmp_path: Path, kind: dict[str, object]) -> None:
    assert estimated_map(finished_run(tmp_path, **kind)[0]) is None  # type: ignore[arg-type]
