"""Labels as people lose them: what stays is what each story says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilltop.cli.main import main
from hilltop.data import (
    LabelTable,
    ScoreTable,
    State,
    Thinned,
    lose_by_annotator,
    lose_by_batch,
    lose_by_clarity,
    lose_by_class,
    lose_by_size,
    read_labels,
    write_labels,
)
from hilltop.errors import ArgumentError

ROWS, CLASSES = 2000, 10
RNG = np.random.default_rng(0)
TRUE = RNG.random((ROWS, CLASSES)) < 0.4
NUMBERS = RNG.random((ROWS, CLASSES))


def complete() -> LabelTable:
    names = [f"c{number}" for number in range(CLASSES)]
    images = [f"{row}.jpg" for row in range(ROWS)]
    return LabelTable.from_coo(images, names, *TRUE.nonzero(), State.PRESENT, unlisted=State.ABSENT)


def kept(thinned: Thinned) -> np.ndarray:
    """Which pairs are still labels; what is gone must be among what was dropped."""
    left = thinned.table.dense() == State.PRESENT
    dropped = thinned.dropped.dense() == State.PRESENT
    assert np.array_equal(left | dropped, TRUE)
    assert not (left & dropped).any()
    return left


def share(left: np.ndarray, where: np.ndarray) -> float:
    return float(left[where & TRUE].mean())


def test_classes_differ_within_the_range_and_images_do_not() -> None:
    left = kept(lose_by_class(complete(), low=0.3, high=0.8, seed=0))
    rates = left.sum(axis=0) / TRUE.sum(axis=0)
    assert 0.25 < rates.min() < rates.max() - 0.2 < 0.65
    assert lose_by_class(complete(), seed=0).table == lose_by_class(complete(), seed=0).table
    assert lose_by_class(complete(), seed=0).table != lose_by_class(complete(), seed=1).table


def test_in_a_batch_images_are_complete_or_carry_one_label() -> None:
    left = kept(lose_by_batch(complete(), complete=0.25, seed=0))
    several = TRUE.sum(axis=1) > 1
    whole = (left == TRUE).all(axis=1)
    assert whole[several].mean() == pytest.approx(0.25, abs=0.04)
    assert (left[several & ~whole].sum(axis=1) == 1).all()


def test_one_annotator_is_careful_and_the_other_does_not_know_some_classes() -> None:
    left = kept(lose_by_annotator(complete(), seed=2))
    by_image = left.sum(axis=1) / np.maximum(1, TRUE.sum(axis=1))
    careful = by_image > 0.8
    assert 0.4 < careful.mean() < 0.65
    rates = left[~careful].sum(axis=0) / TRUE[~careful].sum(axis=0)
    assert rates.min() < 0.2 < 0.4 < rates.max()


@pytest.mark.parametrize("lose", [lose_by_clarity, lose_by_size])
def test_what_is_clear_or_large_stays_rather_than_what_is_not(lose: object) -> None:
    assert callable(lose)
    sizes = NUMBERS * 0.3
    left = kept(lose(complete(), sizes, seed=0))
    assert share(left, sizes < 0.03) < 0.4 < 0.7 < share(left, sizes > 0.27)


def test_a_matrix_of_another_shape_is_refused() -> None:
    with pytest.raises(ArgumentError, match="scores"):
        lose_by_clarity(complete(), NUMBERS[:, 1:], seed=0)


def test_the_command_loses_labels_as_people_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "full.parquet", tmp_path / "thin.parquet"
    write_labels(complete(), source)
    for by in ("class", "batch", "annotator"):
        assert main(["simulate", str(source), "--by", by, "--out", str(out), "--force"]) == 0
        assert 0.2 < read_labels(out).count(State.PRESENT) / TRUE.sum() < 0.9
    shape = complete()
    scores = tmp_path / "scores.npy"
    ScoreTable(shape.images, shape.classes, NUMBERS.astype(np.float32)).save(scores)
    given = ["--by", "clarity", "--scores", str(scores), "--force"]
    assert main(["simulate", str(source), *given, "--out", str(out)]) == 0
    left = read_labels(out).dense() == State.PRESENT
    assert share(left, NUMBERS < 0.1) < 0.4 < 0.7 < share(left, NUMBERS > 0.9)
    assert main(["simulate", str(source), "--by", "size", "--out", str(out), "--force"]) != 0
    assert "only COCO and LVIS files tell how large" in capsys.readouterr().err


def test_boxes_of_a_coco_file_say_what_is_large(tmp_path: Path) -> None:
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 100, "height": 50} for n in range(400)]
    boxes = [
        {
            "id": n,
            "image_id": n,
            "category_id": 1,
            "bbox": [0, 0, *((100, 40) if n % 2 else (2, 2))],
        }
        for n in range(400)
    ]
    source, out = tmp_path / "coco.json", tmp_path / "thin.parquet"
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
    source.write_text(json.dumps(content))
    assert main(["simulate", str(source), "--by", "size", "--out", str(out)]) == 0
    found = read_labels(out)
    left = [
        found.labels_of(row) == ("cat",) for row in found.find([f"{n}.jpg" for n in range(400)])
    ]
    assert sum(left[1::2]) == 200
    assert sum(left[::2]) < 60
