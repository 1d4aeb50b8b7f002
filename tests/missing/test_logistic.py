"""The one logistic regression: against an independent search, its derivatives and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from hilltop.missing.logistic import BINS, Counts, Floats, Prior, fit_logistic
from hilltop.missing.priors import LOWEST_SLOPE


def entries(rows: int = 400, classes: int = 3, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1, 2, (rows, classes))
    return scores, (rng.random(scores.shape) < 0.6 * expit(scores)).astype(float)


def ungrouped(scores: Floats, targets: Floats) -> Counts:
    none = np.zeros_like(scores)
    return Counts(scores, targets, 1 - targets, none, none)


def design(counts: Counts) -> Floats:
    return np.stack([counts.scores, np.ones_like(counts.scores)])


PRIOR = Prior(np.array([1.0, 0.0]), np.array([0.5, 0.1]), np.array([4.0, 2.0]))


@pytest.mark.parametrize(("frequency", "floor"), [(1.0, 0.0), (0.6, 0.0), (0.6, 0.02)])
def test_a_general_search_finds_nothing_better(frequency: float, floor: float) -> None:
    scores, targets = entries()
    counts = ungrouped(scores, targets)
    fit = fit_logistic(design(counts), 0.0, counts, PRIOR, frequency=frequency, floor=floor)

    def cost(numbers: Floats) -> float:
        shared, own = numbers[:2], numbers[2:].reshape(2, 3)
        probs = expit(scores * (shared[0] + own[0]) + shared[1] + own[1])
        recorded = floor + (frequency - floor) * probs
        loss = -(targets * np.log(recorded) + (1 - targets) * np.log1p(-recorded)).sum()
        loss += (PRIOR.precision * (shared - PRIOR.mean) ** 2).sum() / 2
        return float(loss + (PRIOR.class_precision[:, None] * own**2).sum() / 2)

    mine = np.concatenate([fit.shared, fit.by_class.ravel()])
    found = minimize(cost, np.concatenate([[1.0, 0.0], np.zeros(6)]))
    assert cost(mine) <= found.fun + 1e-3
    assert mine == pytest.approx(found.x, abs=0.02)


def test_the_loss_of_classes_is_integrated_over_their_own_coefficients() -> None:
    """Laplace's approximation against a sum over a grid, one class with a shift of its own."""
    scores, targets = entries(60, 1)
    counts = ungrouped(scores, targets)
    prior = Prior(np.array([1.0, 0.0]), np.full(2, 1e9), np.array([np.inf, 4.0]))
    fit = fit_logistic(design(counts), 0.0, counts, prior)
    shifts = np.linspace(-4, 4, 4001)
    logits = scores[:, 0] + shifts[:, None]
    likelihood = (targets[:, 0] * logits - np.logaddexp(0, logits)).sum(axis=1)
    prior_density = np.sqrt(4 / (2 * np.pi)) * np.exp(-2 * shifts**2)
    exact = -np.log((np.exp(likelihood) * prior_density).sum() * (shifts[1] - shifts[0]))
    assert fit.integrated_loss[0] == pytest.approx(exact, abs=0.05)


def test_grouping_changes_next_to_nothing() -> None:
    scores, targets = entries(20_000, 2)
    grouped = Counts.of_labels(scores, targets)
    assert grouped.scores.shape == (BINS, 2)
    assert grouped.labelled.sum() == targets.sum()
    one, other = (
        fit_logistic(design(counts), 0.0, counts, PRIOR, frequency=0.6)
        for counts in (grouped, ungrouped(scores, targets))
    )
    assert one.shared == pytest.approx(other.shared, abs=1e-3)
    assert one.loss == pytest.approx(other.loss, rel=1e-4)


def test_scores_that_point_the_wrong_way_get_the_lowest_slope_and_a_right_shift() -> None:
    scores, targets = entries(3000, 2)
    counts = Counts.of_labels(-scores, targets)
    prior = Prior(np.array([1.0, 0.0]), np.array([0.1, 1e-6]), np.array([np.inf, 4.0]))
    for frequency in (1.0, 0.3):
        fit = fit_logistic(design(counts), 0.0, counts, prior, frequency=frequency)
        assert fit.shared[0] == LOWEST_SLOPE
        slope, shift = fit.coefficients
        recorded = frequency * expit(-scores * slope + shift).mean(axis=0)
        assert recorded == pytest.approx(targets.mean(axis=0), rel=0.1)


def test_verified_and_unknown_entries_count_as_what_they_are() -> None:
    scores, targets = entries(500, 2)
    verified = (targets == 0) & (scores < 0)
    counts = Counts.of_labels(scores, targets, verified)
    assert counts.absent.sum() == verified.sum()
    assert counts.unlabelled.sum() == ((targets == 0) & ~verified).sum()
    targets[::2, 0] = np.nan
    assert Counts.of_labels(scores, targets).total.sum(axis=0).tolist() == [250, 500]


def test_levels_are_means_weighted_by_how_uncertain_scores_are() -> None:
    counts = ungrouped(np.array([[-2.0], [0.0]]), np.zeros((2, 1)))
    weight = expit(-2) * expit(2)
    assert counts.levels()[0] == pytest.approx(-2 * weight / (weight + 0.25))
