"""Useful extra scores help, shuffled ones do no harm, and files are joined by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from hilltop.audit import find_missing_labels
from hilltop.data.scores import read_scores
from hilltop.errors import DataError
from hilltop.inputs.extra_scores import read_extra_scores, read_names
from hilltop.metrics import classification_report
from hilltop.missing.extra_scores import combine_scores, describe_weights

ROWS, CLASSES = 1500, 4


def made_up() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Our logits, an opinion that knows other things, the truth, and half of it as labels."""
    generator = torch.Generator().manual_seed(3)
    seen, other = torch.randn(2, ROWS, CLASSES, generator=generator) * 2
    true = torch.rand(seen.shape, generator=generator) < torch.sigmoid(seen + other - 3)
    kept = true & (torch.rand(seen.shape, generator=generator) < 0.5)
    return seen - 3, other, true, kept.float()


def quality(scores: Tensor, truth: Tensor) -> float:
    return classification_report(torch.sigmoid(scores.double()), truth.double()).mAP


def combined(ours: Tensor, extra: Tensor, labels: Tensor) -> tuple[Tensor, npt.NDArray[np.float64]]:
    found, weights = combine_scores([ours, extra], labels, primary=True)
    return torch.from_numpy(found), weights


def test_useful_scores_count_and_shuffled_ones_do_not() -> None:
    ours, extra, true, labels = made_up()
    shuffled = extra[torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))]
    alone = quality(ours, true)
    assert quality(combined(ours, extra, labels)[0], true) > alone + 0.05
    harmless, weights = combined(ours, shuffled, labels)
    assert abs(quality(harmless, true) - alone) < 0.005
    assert weights.max() < 0.15


def test_weights_are_learned_class_by_class() -> None:
    ours, extra, _, labels = made_up()
    extra = extra.clone()
    extra[:, 0] = torch.randn(ROWS, generator=torch.Generator().manual_seed(0))
    extra[:, 1] = torch.nan
    found, weights = combined(ours, extra, labels)
    assert weights[0] < 0.5 * weights[2:].min()
    assert weights[1] == 0
    assert describe_weights(weights) == "the extra scores count for 2 of 4 classes"
    assert (found[:, 1].argsort() == ours[:, 1].argsort()).all()


def test_the_audit_takes_extra_scores() -> None:
    ours, extra, true, labels = made_up()
    found = []
    for scores in (None, extra.numpy()):
        audited = find_missing_labels(
            labels.numpy(), probabilities=torch.sigmoid(ours), extra_scores=scores
        )
        first = slice(300)
        rows, columns = audited.candidates.rows(first), audited.candidates.columns(first)
        found.append(true[rows, columns].float().mean().item())
    assert found[1] > found[0] + 0.05


def test_several_models_share_their_weight() -> None:
    ours, _, _, labels = made_up()
    found, weight = combine_scores([ours, ours], labels)
    assert np.corrcoef(found[:, 0], ours[:, 0].numpy())[0, 1] > 0.999
    assert weight > 0


def test_files_are_joined_by_the_names_of_images_and_classes(tmp_path: Path) -> None:
    path, names = tmp_path / "opinion.npz", tmp_path / "names.csv"
    scores = np.array([[0.5, 0.25], [0.75, 0.125]])
    np.savez(path, ids=["b", "c"], classes=["Katze", "Hund"], scores=scores)
    names.write_text("Hund,dog\n")
    read = read_extra_scores(path, pa.array(["a", "b"]), ("dog", "cow"), names=read_names(names))
    assert np.isnan(read[0]).all()
    assert np.isnan(read[:, 1]).all()
    assert read[1, 0].item() == pytest.approx(np.log(0.25 / 0.75), abs=1e-5)


def test_an_opinion_about_other_things_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "opinion.npz"
    np.savez(path, ids=["b"], classes=["Hund"], scores=[[0.5]])
    with pytest.raises(DataError, match="about none of the classes; name them with --extra-names"):
        read_extra_scores(path, pa.array(["b"]), ("dog",), names={})
    with pytest.raises(DataError, match="about none of the images"):
        read_extra_scores(path, pa.array(["x"]), ("Hund",), names={})
    np.savez(path, ids=["b"], scores=[[0.5]])
    with pytest.raises(DataError, match=r"Expected ids and classes and scores"):
        read_extra_scores(path, pa.array(["b"]), ("dog",), names={})


def test_where_several_of_their_classes_are_one_of_ours_the_highest_counts(tmp_path: Path) -> None:
    path = tmp_path / "opinion.npz"
    theirs = np.array([[3.0, -1.0, 7.0], [-2.0, 5.0, 8.0]], dtype=np.float32)
    np.savez(path, ids=["a", "b"], classes=["poodle", "pug", "sloth"], scores=theirs)
    names = {"poodle": "dog", "pug": "dog"}
    found = read_extra_scores(path, pa.array(["b", "c", "a"]), ("cat", "dog"), names=names)
    assert np.isnan(found[:, 0]).all()
    assert found[[0, 2], 1].tolist() == [5.0, 3.0]
    assert np.isnan(found[1]).all()


def test_a_table_of_scores_will_do_and_an_empty_cell_is_no_score(tmp_path: Path) -> None:
    path = tmp_path / "opinion.csv"
    path.write_text("image,poodle,pug,cat\na,0.5,,0.25\nb,,,0.75\n")
    names = {"poodle": "dog", "pug": "dog"}
    found = read_extra_scores(path, pa.array(["a", "b"]), ("cat", "dog"), names=names)
    expected = [[np.log(0.25 / 0.75), 0.0], [np.log(0.75 / 0.25), np.nan]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("scores", [[[np.inf]], [[np.nan]]])
def test_scores_that_are_no_numbers_are_refused(scores: list[list[float]], tmp_path: Path) -> None:
    path = tmp_path / "opinion.npz"
    np.savez(path, ids=["a"], classes=["cat"], scores=scores)
    with pytest.raises(DataError, match=r"opinion.npz: .* must be finite numbers"):
        read_extra_scores(path, pa.array(["a"]), ("cat",), names={})


def test_names_in_a_column_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    np.savez(path, ids=[["a"], ["b"]], classes=["cat"], scores=[[0.5], [0.5]])
    with pytest.raises(DataError, match="the image names must be text, one each"):
        read_scores(path)
