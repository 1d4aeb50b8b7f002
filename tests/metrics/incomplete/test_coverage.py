"""Whether 90% intervals are 90% intervals: too narrow and too wide both fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hilltop.calibration.intervals import Z_90
from hilltop.metrics import classification_report, mean_average_precision
from hilltop.metrics.incomplete import IncompleteTest, MetricEstimate
from hilltop.metrics.incomplete.moments import ModelMoments, combine
from tests.metrics.incomplete.made_up import (
    Array,
    answered,
    clear_cases_first,
    simulated,
    too_sure,
)

METRICS = ("mAP", "OF1")
SETS, SAMPLES = 5, 7


def errors(found: dict[str, MetricEstimate], exact: dict[str, float]) -> list[float]:
    """How many standard errors estimates are off."""
    return [
        (found[name].estimate - exact[name]) * 2 * Z_90 / (found[name].high - found[name].low)
        for name in METRICS
    ]


@pytest.mark.parametrize("make", [simulated, clear_cases_first, too_sure])
def test_errors_are_as_large_as_intervals_say(
    make: Callable[[int], tuple[Array, Array, Array]],
) -> None:
    off = np.zeros((2, SETS, SAMPLES, len(METRICS)))
    for seed in range(SETS):
        probs, labels, true = make(seed)
        test, exact = IncompleteTest([probs], labels), classification_report(probs, true).as_dict()
        for at, sample in np.ndindex(2, SAMPLES):
            answers = answered(test, true, (60, 300)[at], seed=sample)
            found = test.with_answers(answers).report().metrics
            off[at, seed, sample] = errors(found, exact)
    spread, covered = (
        np.sqrt(np.mean(off**2, axis=(1, 2))),
        np.mean(np.abs(off) < Z_90, axis=(1, 2)),
    )
    assert (spread > 0.6).all()
    # Sixty answers are few: what they show of their own error is uncertain, too.
    assert (spread < np.array([[1.4], [1.25]])).all()
    assert (covered >= np.array([[0.7], [0.8]])).all()
    assert (np.abs(off.mean(axis=(1, 2))) < 0.8).all()


def test_without_answers_intervals_cover_and_say_something() -> None:
    covered, widths = [], []
    for seed in range(12):
        probs, labels, true = simulated(seed, images=200)
        found = IncompleteTest([probs], labels).report().metrics["mAP"]
        exact, naive = (mean_average_precision(probs, one) for one in (true, labels))
        covered.append(found.low <= exact <= found.high)
        widths.append((found.high - found.low) / (exact - naive))
    assert np.sum(covered) >= 10
    assert 0.4 < np.mean(widths) < 1.8


def model(spread: float, *, calibration: float = 0.0) -> ModelMoments:
    """A model that expects 0.6 on average, and 0.5 at its most probable probabilities."""
    numbers = (0.5, 0.6, calibration, spread, 0.1)
    return ModelMoments(*(np.array([number]) for number in numbers))


def test_corrections_are_added_to_what_they_correct() -> None:
    found = combine(model(1e-2), np.array([0.1]), np.array([1e-8]))
    assert found.mean == pytest.approx(0.6, abs=1e-4)
    assert combine(model(1e-2), np.array([0.0]), np.array([0.0])).mean == 0.6


def test_a_model_that_answers_contradict_loses_its_weight() -> None:
    found = combine(model(1e-6), np.array([0.2]), np.array([0.02**2]))
    assert found.mean == pytest.approx(0.7, abs=0.01)
    assert 0.018 < found.error < 0.025


def test_a_model_that_answers_confirm_makes_intervals_narrower_but_not_much_narrower() -> None:
    found = combine(model(1e-6), np.array([0.0]), np.array([0.02**2]))
    assert found.mean == pytest.approx(0.5)
    assert 0.008 < found.error < 0.015


def test_without_answers_a_metric_near_one_may_be_higher_than_all_draws() -> None:
    draws = np.array([[0.9], [0.95], [0.97], [0.98]])
    found = combine(ModelMoments.of(np.array([0.96]), draws, np.zeros(1)), np.zeros(1), np.zeros(1))
    (interval,) = found.shares()
    assert interval.estimate > draws.mean()
    assert interval.high > 0.98


def test_differences_have_no_log_odds() -> None:
    draws = np.array([[-0.1], [0.3]])
    found = ModelMoments.of(np.zeros(1), draws, np.zeros(1), shares=False)
    assert found.expected == pytest.approx(0.1)
    assert found.alone == pytest.approx(0.2)
