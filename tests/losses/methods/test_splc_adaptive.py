"""Adaptive SPLC: its thresholds, its bounds, and a sweep of its settings on real features."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tests.reference_methods as ref
from hilltop.errors import ArgumentError
from hilltop.losses import Loss, bce, build, splc, splc_adaptive
from tests.losses.conftest import batch, label_stats

FEATURES = Path(__file__).parents[4] / "shared" / "data" / "coco16k_lite0.npz"


def step(loss: Loss, logits: Tensor, targets: Tensor) -> Tensor:
    return loss(logits.clone().requires_grad_(), targets).detach()


def test_it_agrees_with_the_reference_over_epochs() -> None:
    loss = splc_adaptive(reduction="none", start_epoch=2, share=0.3, window=0.5)
    reference = ref.Adaptive(start=2, share=0.3, window=0.5)
    pseudo = 0
    for epoch in range(5):
        loss.set_epoch(epoch)
        for part in range(3):
            logits, targets = (each.double() for each in batch(40, 4, seed=10 * epoch + part))
            expected = reference.step(logits.tolist(), targets.tolist(), epoch)
            actual = step(loss, logits, targets)
            torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64))
            pseudo += int((actual != bce(reduction="none")(logits, targets)).sum())
    assert loss.correction.missing.item() == pytest.approx(reference.missing, rel=1e-5)
    assert 20 < pseudo < 900, "of 2,400 pairs: the comparison has something to compare"


def repeated(loss: Loss, logits: Tensor, targets: Tensor, epochs: int = 6) -> int:
    """Show the same scores again and again; how many are labels in the end?"""
    for epoch in range(epochs):
        loss.set_epoch(epoch)
        step(loss, logits, targets)
    return int(loss.pseudo_labels(logits, targets).sum())


@pytest.mark.parametrize("share", [0.05, 0.2, 0.3])
@pytest.mark.parametrize("lift", [-4.0, 0.0, 8.0])
def test_however_high_all_scores_are_no_more_becomes_a_pseudo_label_than_the_share(
    share: float, lift: float
) -> None:
    logits, targets = batch(300, 6)
    labels = targets.sum(dim=0)
    for loss in (splc_adaptive(share=share), splc_adaptive("hill", share=share)):
        repeated(loss, logits + lift, targets)
        pseudo = loss.pseudo_labels(logits + lift, targets).sum(dim=0)
        assert (pseudo <= share * 3 * labels).all()
    if lift == 8.0:
        assert repeated(splc(), logits + lift, targets) > 0.9 * (targets == 0).sum()


def test_the_best_scored_pairs_of_every_class_become_pseudo_labels() -> None:
    logits, targets = batch(300, 6)
    logits = logits + torch.tensor([-5.0, 0.0, 0.0, 0.0, 0.0, 3.0])
    loss = splc_adaptive(share=0.3)
    repeated(loss, logits, targets)
    pseudo = loss.pseudo_labels(logits, targets)
    assert (pseudo.sum(dim=0) > 0).all(), "a class of low scores gets its part"
    for column in range(6):
        unlabelled = targets[:, column] == 0
        scores, chosen = logits[unlabelled, column], pseudo[unlabelled, column]
        assert scores[chosen].min() > scores[~chosen].max()


def test_the_estimate_is_what_is_missing_where_scores_tell_present_from_absent() -> None:
    generator = torch.Generator().manual_seed(0)
    truth = torch.rand(4000, 5, generator=generator) < 0.2
    logits = torch.where(truth, 3.0, -3.0) + torch.randn(4000, 5, generator=generator)
    for kept in (1.0, 0.75, 0.4):
        targets = truth & (torch.rand(4000, 5, generator=generator) < kept)
        loss = splc_adaptive()
        repeated(loss, logits, targets.float())
        assert loss.correction.missing.item() == pytest.approx((1 - kept) / kept, abs=0.15)


def test_nothing_becomes_a_pseudo_label_before_the_start_or_of_classes_without_labels() -> None:
    logits, targets = batch(300, 6)
    targets[:, 2] = 0
    loss = splc_adaptive(share=0.3)
    assert repeated(loss, logits, targets, epochs=3) == 0
    assert loss.correction.thresholds().isinf().all()
    repeated(loss, logits, targets)
    pseudo = loss.pseudo_labels(logits, targets)
    assert pseudo.any()
    assert not pseudo[:, 2].any()


def test_confirmed_and_unknown_entries_do_not_count() -> None:
    logits, targets = batch(60, 4)
    unknown, verified = targets.clone(), torch.zeros(60, 4, dtype=torch.bool)
    unknown[40:], verified[20:40] = float("nan"), True
    loss = splc_adaptive()
    loss(logits.requires_grad_(), unknown, verified=verified)
    labelled, unlabelled = loss.correction.scores
    assert labelled.sum() == targets[:40].sum()
    assert unlabelled.sum() == (targets[:20] == 0).sum()


def test_the_histograms_are_in_the_state() -> None:
    loss, other = splc_adaptive(), splc_adaptive()
    repeated(loss, *batch(200, 5))
    other.prepare(label_stats(5))
    other.load_state_dict(loss.state_dict())
    assert torch.equal(other.correction.thresholds(), loss.correction.thresholds())
    assert loss.correction.thresholds().isfinite().all()


def test_constants_out_of_range() -> None:
    with pytest.raises(ArgumentError, match="start_epoch must be at least 1, but got 0"):
        splc_adaptive(start_epoch=0)
    with pytest.raises(ArgumentError, match=r"share must be at least 0 and at most 0\.3"):
        splc_adaptive(share=1.5)
    with pytest.raises(ArgumentError, match=r"window must be at least 0\.01"):
        splc_adaptive(window=0)


def test_a_share_of_nothing_is_the_base() -> None:
    logits, targets = batch(200, 5)
    loss = splc_adaptive(share=0)
    repeated(loss, logits, targets)
    torch.testing.assert_close(loss(logits, targets), bce()(logits, targets))


SWEEP = [
    {},
    {"share": 0.05},
    {"share": 0.3},
    {"start_epoch": 1},
    {"start_epoch": 6},
    {"window": 0.1},
    {"window": 1.0},
]


@pytest.mark.slow
@pytest.mark.skipif(not FEATURES.is_file(), reason="needs real features, shared/data")
@pytest.mark.parametrize("labels", ["Y_075left", "Y_04left", "Y_single"])
def test_no_setting_of_its_own_loses_a_point_of_map_on_real_features(labels: str) -> None:
    import numpy as np

    from hilltop.metrics import mean_average_precision

    content = np.load(FEATURES)
    values = torch.from_numpy(content["X"][:7000].astype(np.float32))
    values = values / values.norm(dim=1, keepdim=True)
    values = (values - values[:6000].mean(dim=0)) / (values[:6000].std(dim=0) + 1e-6)
    targets = torch.from_numpy(content[labels][:6000]).float()
    truth = torch.from_numpy(content["Y_full"][6000:7000])
    losses = [build("bce"), *(build("splc_adaptive", **options) for options in SWEEP)]
    scores = trained_side_by_side(losses, values, targets)
    maps = [100 * mean_average_precision(part.double(), truth) for part in scores]
    assert min(maps[1:]) > max(maps[:2]) - 1, maps


def trained_side_by_side(losses: list[Loss], values: Tensor, targets: Tensor) -> list[Tensor]:
    """Scores of the last rows, by one linear head a loss; one multiplication serves all heads."""
    images, classes = targets.shape
    weight = torch.zeros(values.shape[1], classes * len(losses), requires_grad=True)
    prior = torch.logit(targets.mean(dim=0).clamp(1 / images, 0.5)).repeat(len(losses))
    bias = prior.requires_grad_()
    groups = [{"params": [weight], "weight_decay": 3.0}, {"params": [bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-4)
    epochs, steps = 12, math.ceil(images / 128)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-4, total_steps=epochs * steps, pct_start=0.2
    )
    for epoch in range(epochs):
        for loss in losses:
            loss.set_epoch(epoch)
        for rows in torch.randperm(images).split(128):
            logits = torch.addmm(bias, values[rows], weight).chunk(len(losses), dim=1)
            parts = [loss(own, targets[rows]) for loss, own in zip(losses, logits, strict=True)]
            (sum(parts) * targets[rows].numel()).backward()
            optimizer.step(), optimizer.zero_grad(), schedule.step()
    with torch.no_grad():
        return list(torch.addmm(bias, values[images:], weight).chunk(len(losses), dim=1))
