"""Observation models against the enumeration of all label sets, and in their limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import pytest
import torch
from torch import Tensor

import tests.reference_observation as ref
from hilltop.data.simulation import drop_positives
from hilltop.errors import ArgumentError
from hilltop.losses import (
    Loss,
    ObservationModel,
    bce,
    build,
)
from hilltop.losses import count_likelihood as count_preset
from hilltop.losses import scar_likelihood as scar_preset
from hilltop.losses.likelihood.count_rule import log_elementary_sums
from tests.data.test_missing import random_table
from tests.losses.conftest import batch

# Equations, from the first step.
scar_likelihood = partial(scar_preset, safe_start=False)
count_likelihood = partial(count_preset, safe_start=False)
RATIOS = ["0", "0.3", "0.5", "0.8", "0.9", "1"]
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def double(numbers: list[list[float]]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def gradient(loss: Loss, logits: Tensor, targets: Tensor, **options: Tensor) -> Tensor:
    leaf = logits.clone().requires_grad_()
    loss(leaf, targets, **options).backward()
    assert leaf.grad is not None
    return leaf.grad


def images(classes: int, count: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Images with labels, masks and confirmed entries of every kind."""
    generator = torch.Generator().manual_seed(classes)
    for _ in range(count):
        logits = 3 * torch.randn(1, classes, generator=generator, dtype=torch.float64) - 1
        draws = torch.rand(3, 1, classes, generator=generator)
        targets = (draws[0] < draws[0].mean() * 0.8).double()
        targets[draws[1] < 0.15] = float("nan")
        yield logits, targets, draws[2] < 0.2


def enumerated(
    logits: Tensor, targets: Tensor, verified: Tensor, prob: ref.Written
) -> ref.Enumerated:
    plain = [None if math.isnan(t) else int(t) for t in targets[0].tolist()]
    return ref.enumerate_image(logits[0].tolist(), plain, verified[0].tolist(), prob)


def assert_equals_enumeration(loss: Loss, prob: ref.Written, classes: int, count: int) -> None:
    assert isinstance(loss, ObservationModel)
    for logits, targets, verified in images(classes, count):
        expected = enumerated(logits, targets, verified, prob)
        value = loss(logits, targets, verified=verified).item()
        assert value == pytest.approx(expected.loss, rel=1e-10, abs=1e-10)
        grad = gradient(loss, logits, targets, verified=verified)
        torch.testing.assert_close(grad, double([expected.grad]), **EXACT)
        posterior = loss.posterior(logits, targets, verified=verified)
        torch.testing.assert_close(posterior, double([expected.posterior]), **EXACT)
        pseudo = loss.pseudo_labels(logits, targets, verified=verified)
        assert torch.equal(pseudo, (posterior > 0.5) & (targets == 0))


@pytest.mark.parametrize("r", RATIOS)
@pytest.mark.parametrize("classes", [1, 2, 5, 8])
def test_counted_likelihood_equals_enumeration(r: str, classes: int) -> None:
    loss = count_likelihood(r=r, reduction="sum")
    assert_equals_enumeration(loss, ref.by_count(Fraction(r)), classes, 12)


@pytest.mark.parametrize("restore_prob", [0.01, 0.5])
@pytest.mark.parametrize("r", RATIOS)
@pytest.mark.parametrize("classes", [2, 5, 8])
def test_counted_likelihood_of_labels_put_back_equals_enumeration(
    r: str, classes: int, restore_prob: float
) -> None:
    loss = count_likelihood(r=r, restore_prob=restore_prob, reduction="sum")
    prob = ref.by_count_and_put_back(Fraction(r), restore_prob)
    assert_equals_enumeration(loss, prob, classes, 8)


@pytest.mark.parametrize("classes", [1, 2, 5, 8])
def test_independent_likelihood_equals_enumeration(classes: int) -> None:
    rates = [0.125 * (1 + number % 8) for number in range(classes)]  # exact in float32
    for keep in (0.4, 1.0, rates):
        loss = scar_likelihood(keep, reduction="sum")
        each = keep if isinstance(keep, list) else [keep] * classes
        assert_equals_enumeration(loss, ref.independently(each), classes, 12)


@pytest.mark.parametrize("keep", [0.05, 0.4, 0.999, 1.0])
def test_the_independent_half_is_right_at_every_logit(keep: float) -> None:
    """Compared with forms that are exact on their side of 0, in plain floats."""
    grid = [-1e4, -800.0, -90.0, -20.0, -1.0, 0.0, 1e-6, 2.0, 17.0, 40.0, 90.0, 800.0, 1e4]
    exact, grads = [], []
    for x in grid:
        small = math.exp(-abs(x))  # the smaller odds
        if x <= 0:
            exact.append(-math.log1p(-keep * small / (1 + small)))
            grads.append(keep * small / (1 + small) / (1 + (1 - keep) * small))
        else:
            # (1 - c p) (1 + small) = small + 1 - c
            exact.append(x if keep == 1 and x > 700 else math.log1p(small))
            exact[-1] -= 0.0 if keep == 1 and x > 700 else math.log(small + (1 - keep))
            grads.append(1.0 if keep == 1 and x > 700 else keep * small / (small + (1 - keep)))
            grads[-1] /= 1 + small
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 2e-6)):
        logits = torch.tensor([grid], dtype=dtype)
        loss = scar_likelihood(keep, reduction="none")
        value, grad = loss(logits, torch.zeros_like(logits)), torch.tensor([grads], dtype=dtype)
        torch.testing.assert_close(
            value, torch.tensor([exact], dtype=dtype), rtol=tolerance, atol=1e-30
        )
        total = scar_likelihood(keep, reduction="sum")
        actual = gradient(total, logits, torch.zeros_like(logits))
        torch.testing.assert_close(actual, grad, rtol=20 * tolerance, atol=1e-30)


class TestLimits:
    """Where the models coincide with each other and with cross-entropy."""

    logits, targets = batch(40, 9)
    verified = torch.rand(40, 9, generator=torch.Generator().manual_seed(1)) < 0.3

    def assert_equal(self, one: Loss, other: Loss) -> None:
        for part in (self.logits, self.logits.double()):
            options = {"verified": self.verified}
            torch.testing.assert_close(
                one(part, self.targets, **options), other(part, self.targets, **options)
            )
            torch.testing.assert_close(
                gradient(one, part, self.targets, **options),
                gradient(other, part, self.targets, **options),
            )

    def test_keeping_everything_is_bce(self) -> None:
        self.assert_equal(scar_likelihood(1.0), bce())
        self.assert_equal(scar_likelihood([1.0] * 9), bce())
        self.assert_equal(count_likelihood(r=0), bce())

    def test_the_start_of_a_warm_up_is_bce_and_its_end_the_likelihood(self) -> None:
        for build_loss in (scar_likelihood, count_likelihood):
            loss = build_loss(warmup_epochs=3)
            self.assert_equal(loss, bce())
            loss.set_epoch(3)
            self.assert_equal(loss, build_loss())
            loss.set_epoch(9)
            self.assert_equal(loss, build_loss())

    def test_half_way_up_the_label_frequency_is_half_way(self) -> None:
        loss = scar_likelihood(0.4, warmup_epochs=4)
        loss.set_epoch(2)
        self.assert_equal(loss, scar_likelihood(0.7))

    def test_half_way_up_the_counted_loss_is_half_cross_entropy(self) -> None:
        loss, end = count_likelihood(warmup_epochs=2), count_likelihood()
        loss.set_epoch(1)
        pair = self.logits, self.targets
        torch.testing.assert_close(loss(*pair), (end(*pair) + bce()(*pair)) / 2)

    def test_one_rate_for_all_classes_is_the_same_rate_for_each(self) -> None:
        self.assert_equal(scar_likelihood(0.25), scar_likelihood([0.25] * 9))

    def test_without_labels_nothing_was_lost_by_count(self) -> None:
        empty = torch.zeros(4, 9)
        logits = self.logits[:4]
        torch.testing.assert_close(count_likelihood()(logits, empty), bce()(logits, empty))
        assert (count_likelihood().posterior(logits, empty) == 0).all()

    def test_more_labels_than_the_rule_leaves_count_as_complete(self) -> None:
        targets = torch.zeros(4, 9)
        targets[:, :2] = 1
        logits = self.logits[:4]
        loss = count_likelihood(r=1)
        torch.testing.assert_close(loss(logits, targets), bce()(logits, targets))
        torch.testing.assert_close(loss.posterior(logits, targets), targets)


def test_a_label_that_was_put_back_does_not_stand_for_many_others() -> None:
    logits = torch.full((1, 20), -3.0)
    targets = torch.zeros(1, 20)
    targets[0, :2] = 1

    def missing(loss: Loss) -> float:
        assert isinstance(loss, ObservationModel)
        return float(loss.posterior(logits, targets).sum()) - 2

    assert missing(count_likelihood(r=0.8)) >= 3  # two labels are left of five to nine
    assert missing(count_likelihood(r=0.8, restore_prob=0.1)) < 1.0


@pytest.mark.parametrize("restore_prob", [-0.1, 1.0, float("nan")])
def test_restore_prob_is_between_0_and_nine_tenths(
    restore_prob: float,
) -> None:
    with pytest.raises(ArgumentError, match="restore_prob must be"):
        count_likelihood(restore_prob=restore_prob)


def test_whether_a_label_is_verified_does_not_matter() -> None:
    logits, targets = batch(20, 6)
    for loss in (scar_likelihood(), count_likelihood()):
        plain = loss(logits, targets)
        torch.testing.assert_close(loss(logits, targets, verified=targets == 1), plain)


def test_elementary_sums_stay_finite_and_exact_at_extreme_logits() -> None:
    logits = double([[1e4] * 6, [-1e4] * 6, [1e4, -1e4, 5e3, 0, 0, 0]])
    actual = log_elementary_sums(logits, 6)
    expected = [[1e4 * u + math.log(math.comb(6, u)) for u in range(7)]]
    expected.append([-1e4 * u + math.log(math.comb(6, u)) for u in range(7)])
    torch.testing.assert_close(actual[:2], double(expected))
    assert actual[2, 2].item() == pytest.approx(15e3)


def test_soft_targets_cannot_be_counted() -> None:
    logits, targets = batch()
    targets[0, 0] = 0.25
    for dtype in (torch.float32, torch.float64):
        with pytest.raises(ArgumentError, match=r"targets must be 0, 1 or NaN .* but got 0\.25"):
            count_likelihood()(logits.to(dtype), targets)
    with pytest.raises(ArgumentError, match="Use another loss, such as scar_likelihood"):
        count_likelihood().posterior(logits, targets)


def test_soft_targets_mix_the_independent_halves() -> None:
    logits = torch.tensor([[0.3, -2.0]])
    loss = scar_likelihood(0.5, reduction="none")
    ones = torch.ones(1, 2)
    mixed = 0.3 * loss(logits, ones) + 0.7 * loss(logits, 0 * ones)
    torch.testing.assert_close(loss(logits, 0.3 * ones), mixed)
    missing = loss.posterior(logits, 0 * ones)
    torch.testing.assert_close(loss.posterior(logits, 0.3 * ones), 0.3 + 0.7 * missing)


@pytest.mark.parametrize("name", ["scar_likelihood", "count_likelihood"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_posteriors_are_probabilities_at_every_logit(name: str, dtype: torch.dtype) -> None:
    model = build(name)
    assert isinstance(model, ObservationModel)
    logits = torch.tensor([[-1e4, -89.0, 0.0, 17.5, 1e4, 3.0, 2.0, float("nan")]], dtype=dtype)
    targets = torch.tensor([[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, float("nan"), 1.0]])
    verified = torch.zeros_like(targets, dtype=torch.bool)
    verified[0, 4] = True
    with torch.inference_mode():
        posterior = model.posterior(logits[:, :7], targets[:, :7], verified=verified[:, :7])
    assert posterior.dtype == (dtype if dtype == torch.float64 else torch.float32)
    assert ((posterior >= 0) & (posterior <= 1)).all()
    assert (posterior[0, [2, 5]] == 1).all()
    assert posterior[0, 4] == 0
    assert posterior[0, 6].item() == pytest.approx(1 / (1 + math.exp(-2)), abs=1e-6)


def test_the_posterior_of_an_unlabelled_image_of_any_shape() -> None:
    for model in (scar_likelihood(), count_likelihood()):
        logits, targets = batch(6, 5)
        shaped = model.posterior(logits.view(2, 3, 5), targets.view(2, 3, 5))
        torch.testing.assert_close(shaped.view(6, 5), model.posterior(logits, targets))


@pytest.mark.parametrize("r", [0.0, 0.3, 0.5, 0.8, 0.95, 1.0])
def test_the_rule_is_that_of_the_simulation(r: float) -> None:
    table = random_table()
    rule = count_likelihood(r=r).rule
    left = drop_positives(table, r, seed=0).table.labels_per_image()
    assert left.tolist() == [
        rule.number_left(labels) for labels in table.labels_per_image().tolist()
    ]
