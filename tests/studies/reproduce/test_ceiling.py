"""The script that asks how much can be won back runs on small data, and its ends are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hilltop.data import State, assemble, write_labels
from tests.processes import run

SCRIPT = Path(__file__).parents[3] / "reproduction" / "ceiling.py"
IMAGES, JUDGED, FEATURES, CLASSES = 300, 100, 16, 4


def write_problem(folder: Path) -> list[str]:
    """Features in which every class has a direction of its own, and complete labels."""
    rng = np.random.default_rng(0)
    true = rng.random((IMAGES + JUDGED, CLASSES)) < 0.4
    directions = rng.standard_normal((CLASSES, FEATURES))
    values = true @ directions + rng.standard_normal((len(true), FEATURES))
    ids = np.array([f"{number:04}" for number in range(len(true))])
    np.savez(folder / "features.npz", ids=ids, X=values.astype(np.float32))
    for name, part in (("train", slice(IMAGES)), ("val", slice(IMAGES, None))):
        rows, columns = np.nonzero(true[part])
        classes = [f"c{number}" for number in range(CLASSES)]
        images = pa.array(ids[part].tolist())
        table = assemble(images, classes, rows, columns, State.PRESENT, unlisted=State.ABSENT)
        write_labels(table, folder / f"{name}.parquet")
    labels = ["--labels", "train.parquet", "--val-labels", "val.parquet"]
    return [*labels, "--features", "features.npz"]


@pytest.mark.slow
def test_whoever_has_all_answers_is_as_good_as_complete_labels(tmp_path: Path) -> None:
    options = [*write_problem(tmp_path), "--keep", "single", "--seeds", "0"]
    every_pair = str(IMAGES * CLASSES)
    printed = run(SCRIPT, *options, "--answers", f"30,{every_pair}", folder=tmp_path)
    first, *lines = printed.splitlines()
    assert first.startswith("single label, 1 seed: ")
    values = {line[2:18].strip(): float(line[18:24]) for line in lines}
    names = ["bce", "auto", "audit", "30 answers", "1,200 answers", "told", "complete"]
    assert list(values) == names
    assert values["1,200 answers"] == pytest.approx(values["complete"], abs=0.02)
    assert values["bce"] < values["told"] < values["complete"]
