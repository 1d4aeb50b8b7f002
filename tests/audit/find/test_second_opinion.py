"""A useful second opinion helps, a shuffled one does no harm, and files are joined by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from hilltop.audit import find_missing_labels
from hilltop.audit.find.second_opinion import join_opinion, read_names, read_opinion
from hilltop.errors import DataError
from hilltop.metrics import classification_report

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


def test_a_useful_opinion_is_trusted_and_a_shuffled_one_is_not() -> None:
    ours, opinion, true, labels = made_up()
    shuffled = opinion[torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))]
    alone = quality(ours, true)
    assert quality(join_opinion(ours, opinion, labels).logits, true) > alone + 0.05
    harmless = join_opinion(ours, shuffled, labels)
    assert abs(quality(harmless.logits, true) - alone) < 0.005
    assert harmless.trust.max() < 0.15


def test_trust_is_learned_class_by_class() -> None:
    ours, opinion, _, labels = made_up()
    opinion = opinion.clone()
    opinion[:, 0] = torch.randn(ROWS, generator=torch.Generator().manual_seed(0))
    opinion[:, 1] = torch.nan
    joined = join_opinion(ours, opinion, labels)
    assert joined.trust[0] < 0.5 * joined.trust[2:].min()
    assert joined.trust[1] == 0
    assert "counts for 2 classes, most for " in joined.sentence(("a", "b", "c", "d"))
    order = joined.logits[:, 1].argsort()
    assert (order == ours[:, 1].argsort()).all()


def test_the_audit_takes_a_second_opinion() -> None:
    ours, opinion, true, labels = made_up()
    found = []
    for also in (None, opinion.numpy()):
        audited = find_missing_labels(labels.numpy(), probabilities=torch.sigmoid(ours), also=also)
        first = slice(300)
        rows, columns = audited.candidates.rows(first), audited.candidates.columns(first)
        found.append(true[rows, columns].float().mean().item())
    assert found[1] > found[0] + 0.05


def test_files_are_joined_by_the_names_of_images_and_classes(tmp_path: Path) -> None:
    path, names = tmp_path / "opinion.npz", tmp_path / "names.csv"
    scores = np.array([[0.5, 0.25], [0.75, 0.125]])
    np.savez(path, ids=["b", "c"], classes=["Katze", "Hund"], scores=scores)
    names.write_text("Hund,dog\n")
    read = read_opinion(path, pa.array(["a", "b"]), ("dog", "cow"), names=read_names(names))
    assert read[0].isnan().all()
    assert read[:, 1].isnan().all()
    assert read[1, 0].item() == pytest.approx(np.log(0.25 / 0.75), abs=1e-5)


def test_an_opinion_about_other_things_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "opinion.npz"
    np.savez(path, ids=["b"], classes=["Hund"], scores=[[0.5]])
    with pytest.raises(DataError, match="about none of the classes; name them with --also-names"):
        read_opinion(path, pa.array(["b"]), ("dog",), names={})
    with pytest.raises(DataError, match="about none of the images"):
        read_opinion(path, pa.array(["x"]), ("Hund",), names={})
    np.savez(path, ids=["b"], scores=[[0.5]])
    with pytest.raises(DataError, match=r"Expected ids and classes and scores"):
        read_opinion(path, pa.array(["b"]), ("dog",), names={})


def test_where_several_of_their_classes_are_one_of_ours_the_highest_counts(tmp_path: Path) -> None:
    path = tmp_path / "opinion.npz"
    theirs = np.array([[3.0, -1.0, 7.0], [-2.0, 5.0, 8.0]], dtype=np.float32)
    np.savez(path, ids=["a", "b"], classes=["poodle", "pug", "sloth"], scores=theirs)
    names = {"poodle": "dog", "pug": "dog"}
    found = read_opinion(path, pa.array(["b", "c", "a"]), ("cat", "dog"), names=names)
    assert found[:, 0].isnan().all()
    assert found[[0, 2], 1].tolist() == [5.0, 3.0]
    assert found[1].isnan().all()
