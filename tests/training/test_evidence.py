"""What evidence of missing labels makes of the weights of unlabelled pairs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from hilltop.losses import LabelStats
from hilltop.losses.methods.auto import auto
from hilltop.missing import MissingLabelModel
from hilltop.training import fit_head
from hilltop.training.heads import FoldEvidence, KnownLabels, mask_evidence, prepare_loss
from hilltop.training.learner import head_loss

Rows = tuple[Tensor, Tensor, Tensor]


@pytest.fixture(scope="module")
def lost() -> Rows:
    """Scores, true labels, and half of the labels."""
    generator = torch.Generator().manual_seed(0)
    logits = 6 * torch.randn(2000, 3, generator=generator)
    true = torch.rand(2000, 3, generator=generator) < torch.sigmoid(logits)
    kept = true & (torch.rand(2000, 3, generator=generator) < 0.5)
    return logits, true.float(), kept.float()


@pytest.mark.parametrize(("limit", "word"), [(0.3, "probably"), (0.7, "possibly")])
def test_pairs_that_were_forgotten_by_the_evidence_are_left_out(
    lost: Rows, limit: float, word: str
) -> None:
    logits, true, kept = lost
    model = MissingLabelModel.fit(logits, kept)
    found = mask_evidence(FoldEvidence(logits, model), KnownLabels(kept), limit)
    assert found.weight is not None
    left_out = found.weight == 0
    present = torch.from_numpy(model.prob_present(logits, kept))
    assert torch.equal(left_out, (1 - present < limit) & (kept == 0))
    assert bool((found.weight[~left_out] == 1).all())
    missing = (true == 1) & (kept == 0)
    assert left_out[missing].float().mean() > 0.4
    assert left_out[true == 0].float().mean() < limit / 3
    assert f"without {int(left_out.sum()):,} unlabelled entries that are {word}" in found.sentence


def test_what_a_person_said_is_absent_counts_in_full(lost: Rows) -> None:
    logits, _, kept = lost
    absent = kept == 0
    absent[:1000] = False
    asked = FoldEvidence(logits, MissingLabelModel.fit(logits, kept, verified=absent))
    found = mask_evidence(asked, KnownLabels(kept, absent))
    assert found.weight is None or bool((found.weight[absent] == 1).all())


def test_complete_labels_are_cross_entropy(lost: Rows) -> None:
    logits, true, _ = lost
    asked = FoldEvidence(logits, MissingLabelModel.fit(logits, true))
    found = mask_evidence(asked, KnownLabels(true))
    assert found.weight is None
    assert found.sentence.endswith("cross-entropy")


def test_too_few_rows_are_said() -> None:
    loss, targets = auto(), torch.eye(3)
    features = torch.eye(3)
    told = prepare_loss(
        loss, LabelStats.of(targets), features, lambda rows: (targets[rows], None), seed=0
    )
    assert told is None
    assert "3 rows are too few" in str(loss.describe())


def test_auto_without_missing_labels_is_cross_entropy_to_the_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(400, 6, generator=generator)
    targets = (features[:, :4] + torch.randn(400, 4, generator=generator) > 1).float()

    def weights(name: str) -> Tensor:
        fitted = fit_head(
            features,
            lambda rows: (targets[rows], None),
            head_loss(name, reduction="sum"),
            classes=4,
            stats=LabelStats.of(targets),
        )
        return fitted.head.last.weight

    assert torch.equal(weights("auto"), weights("bce"))
