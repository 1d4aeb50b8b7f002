"""The label frequency: learned, warmed up, by class, and given wrongly."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.losses import (
    FocalPositive,
    LabelFrequency,
    Loss,
    MultiLabelLoss,
    ScarNegative,
    ScarPositive,
    build,
    count_likelihood,
    scar_likelihood,
    splc,
)
from tests.losses.conftest import batch


class TestLearnedRate:
    """The label frequency as a parameter."""

    @staticmethod
    def fit(loss: Loss, probs: Tensor, labels: Tensor) -> float:
        """Fit the rate alone, the model being right."""
        logits = torch.logit(probs)
        optimizer = torch.optim.LBFGS(loss.parameters(), max_iter=60)

        def closure() -> Tensor:
            optimizer.zero_grad()
            value = loss(logits, labels)
            value.backward()
            return value

        optimizer.step(closure)
        rate = loss.frequency  # type: ignore[attr-defined]
        assert isinstance(rate, LabelFrequency)
        return float(rate().detach())

    def test_it_finds_the_rate_if_the_model_is_right(self) -> None:
        generator = torch.Generator().manual_seed(0)
        probs = torch.rand(20_000, 1, generator=generator).clamp(0.01, 0.99)
        true = torch.rand(probs.shape, generator=generator) < probs
        labels = (true & (torch.rand(probs.shape, generator=generator) < 0.3)).float()
        loss = scar_likelihood(label_frequency=None, prior_weight=0.0)
        assert self.fit(loss, probs, labels) == pytest.approx(0.3, abs=0.015)

    def test_its_prior_holds_it_where_the_data_say_nothing(self) -> None:
        """All labels there and p = 1: the likelihood wants c = 1, which the prior forbids."""
        probs, labels = torch.full((50, 1), 1 - 1e-6), torch.ones(50, 1)
        held = self.fit(scar_likelihood(0.4, learn=True, prior_weight=1.0), probs, labels)
        # d/dc [-log c - 0.4 log c - 0.6 log(1 - c)] = 0 at c = 1.4 / 2.
        assert held == pytest.approx(0.7, abs=1e-3)

    def test_it_starts_as_the_given_rate_and_has_its_gradient(self) -> None:
        logits, targets = batch(6, 4)
        rates = [0.2, 0.4, 0.6, 0.8]
        learned, given = (scar_likelihood(rates, learn=choice) for choice in (True, False))
        torch.testing.assert_close(learned(logits, targets), given(logits, targets))
        learned(logits, targets).backward()
        (offset,) = learned.parameters()
        assert offset.grad is not None
        step = 1e-3
        for number in range(4):
            moved = []
            for sign in (1, -1):
                odds = torch.logit(torch.tensor(rates).double())
                odds[number] += sign * step
                moved.append(scar_likelihood(torch.sigmoid(odds)))
            up, down = (float(loss(logits.double(), targets)) for loss in moved)
            assert offset.grad[number].item() == pytest.approx((up - down) / 2 / step, abs=2e-4)

    def test_during_warm_up_it_learns_from_the_prior_alone(self) -> None:
        loss = scar_likelihood(0.4, learn=True, warmup_epochs=2)
        logits, targets = batch()
        loss(logits, targets).backward()
        (offset,) = loss.parameters()
        assert offset.grad is not None
        assert offset.grad.item() == pytest.approx(0, abs=1e-8)


def test_a_loaded_state_brings_its_warm_up_along() -> None:
    loss, other = (scar_likelihood(0.4, warmup_epochs=4) for _ in range(2))
    loss.set_epoch(2)
    other.load_state_dict(loss.state_dict())
    pair = batch()
    for same in (other, copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        torch.testing.assert_close(same(*pair), loss(*pair))


def test_the_halves_go_with_others_and_with_corrections() -> None:
    logits, targets = batch()
    loss = MultiLabelLoss(
        positive=FocalPositive(margin=1.0),
        negative=ScarNegative(label_frequency=0.3),
        reduction="none",
    )
    expected = torch.where(targets == 1, loss.positive(logits), loss.negative(logits))
    torch.testing.assert_close(loss(logits, targets), expected)
    corrected = splc(scar_likelihood([0.3] * 5, reduction="none"), tau=0.6, start_epoch=0)
    pseudo = torch.where(
        (targets == 1) | (torch.sigmoid(logits) > 0.6),
        ScarPositive(label_frequency=0.3)(logits),
        ScarNegative(label_frequency=0.3)(logits),
    )
    torch.testing.assert_close(corrected(logits, targets), pseudo)
    assert torch.equal(
        corrected.pseudo_labels(logits, targets), (torch.sigmoid(logits) > 0.6) & (targets == 0)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"label_frequency": 0.0},
            "label_frequency must be at least 0.001 and at most 1, but got 0.0",
        ),
        (
            {"label_frequency": [0.5, 1.2]},
            "label_frequency must be at least 0.001 and at most 1, but got 1.2",
        ),
        (
            {"label_frequency": 1.0, "learn": True},
            "label_frequency must be at least 0.001 and at most 0.999",
        ),
        ({"label_frequency": [[0.5]]}, "label_frequency must be one number or one row of numbers"),
        ({"prior_weight": -1.0}, "prior_weight must be at least 0"),
        ({"warmup_epochs": -1}, "warmup_epochs must be at least 0"),
    ],
)
def test_wrong_options_of_scar_likelihood(options: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        build("scar_likelihood", **options)


def test_wrong_options_of_count_likelihood() -> None:
    for wrong in (1.5, "most", -0.1):
        with pytest.raises(ArgumentError, match="r must be"):
            count_likelihood(r=wrong)
    with pytest.raises(ArgumentTypeError, match="has no option 'class_weight'"):
        build("count_likelihood", class_weight=2.0)


def test_rates_must_fit_the_classes() -> None:
    logits, targets = batch()
    with pytest.raises(
        ArgumentError, match="label_frequency must be one number or one for each of the 5"
    ):
        scar_likelihood([0.5, 0.5])(logits, targets)
