"""Numbers of each class from which all metrics follow, their spread, and what answers correct.

For every model there are six: average precision, hits, positives, and hits among the first 1, 3 and
5 of each image. All but the first are sums over pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.answers import SampledAnswers
from hilltop.metrics.incomplete.judged_model import TOP_KS, JudgedModel
from hilltop.metrics.incomplete.ranked_column import RankedColumn
from hilltop.metrics.incomplete.truth_posterior import TruthPosterior

SUMS = 3 + len(TOP_KS)
"""Numbers of a class, for each model."""
CHOICE_ERROR = 0.3
"""How far off, in log odds, pairs may be together that a model predicts or puts first."""
BLEND_ERROR = 0.2
"""How far off the share of one of two models in what is probably true may be."""
_CHOSEN = (False, True, False, *(True for _ in TOP_KS))
_ENTRIES_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class ClassSums:
    """What all metrics follow from; K numbers of each class.

    Attributes:
        middle: At the most probable probabilities, which answers correct ``(C, K)``.
        draws: For each draw of the calibration ``(draws, C, K)``.
        spread: Covariance of truth around its probabilities ``(C, K, K)``.
        misfit: How far they are off together, if what models chose is, and if one model knows more
            of the truth than was thought ``(2, C, K)``.
        correction: What answers add, unbiased ``(C, K)``.
        sampling: Covariance of the correction, as residuals show it and as probabilities let
            expect it: the first says too little where hardly any answer was yes ``(2, C, K, K)``.
    """

    middle: Floats
    draws: Floats
    spread: Floats
    misfit: Floats
    correction: Floats
    sampling: Floats

    @classmethod
    def empty(cls, draws: int, classes: int, size: int) -> ClassSums:
        """Return zeros to be filled."""
        square = (classes, size, size)
        return cls(
            np.zeros((classes, size)),
            np.zeros((draws, classes, size)),
            np.zeros(square),
            np.zeros((2, classes, size)),
            np.zeros((classes, size)),
            np.zeros((2, *square)),
        )


def sum_up(
    models: Sequence[JudgedModel],
    truth: TruthPosterior,
    answers: SampledAnswers,
    places: Floats,
    *,
    apart: Floats | None = None,
) -> ClassSums:
    """Find the numbers of every class.

    Args:
        models: Whose metrics are wanted.
        truth: What is known, answers included.
        answers: The same answers.
        places: Draws of the calibration.
        apart: Logits of the first model less those of the second ``(N, C)``.
    """
    classes = truth.odds.shape[1]
    sums = ClassSums.empty(len(places), classes, SUMS * len(models))
    weights = answers.correction_weights(), answers.variance_weights()
    expected = truth.expected_answers(answers)
    places = np.concatenate([truth.place[None], places])
    for column in range(classes):
        ranked = rank_column(models, truth, column)
        drawn = _drawn(models, truth, column, places, ranked)
        sums.middle[column], sums.draws[:, column] = drawn[0], drawn[1:]
        gradient = pair_gradient(models, truth, column, ranked)
        variance, by_slope = truth.uncertainty(column)
        off = by_slope @ gradient
        sums.spread[column] = _covariance(gradient, variance) + np.outer(off, off)
        sums.misfit[0, column] = CHOICE_ERROR * (variance @ gradient) * (_CHOSEN * len(models))
        if apart is not None:
            sums.misfit[1, column] = BLEND_ERROR * _centred(apart[:, column], variance) @ gradient
        mine = (answers.columns == column) & ~np.isnan(expected)
        if mine.any():
            moves, probs = gradient[answers.rows[mine]], expected[mine]
            residual = answers.present[mine] - probs
            sums.correction[column] = (weights[0][mine] * residual) @ moves
            sums.sampling[0, column] = _covariance(moves, weights[1][mine] * residual**2)
            sums.sampling[1, column] = _covariance(moves, weights[1][mine] * probs * (1 - probs))
    return sums


def rank_column(
    models: Sequence[JudgedModel], truth: TruthPosterior, column: int
) -> list[RankedColumn]:
    """Scores of a class by each model, where it takes part."""
    there = ~np.isnan(truth.odds[:, column])
    return [RankedColumn(model.scores[there, column]) for model in models]


def pair_gradient(
    models: Sequence[JudgedModel],
    truth: TruthPosterior,
    column: int,
    ranked: Sequence[RankedColumn],
) -> Floats:
    """How much each number of a class grows with each pair's probability ``(N, K)``."""
    there = ~np.isnan(truth.odds[:, column])
    probs = truth.probs(column)[there]
    gradient = np.zeros((len(there), SUMS * len(models)))
    for number, (model, order) in enumerate(zip(models, ranked, strict=True)):
        first = number * SUMS
        gradient[there, first] = order.gradient(probs)
        gradient[there, first + 1 : first + SUMS] = model.flags(column)[there]
    return gradient


def _drawn(
    models: Sequence[JudgedModel],
    truth: TruthPosterior,
    column: int,
    places: Floats,
    ranked: Sequence[RankedColumn],
) -> Floats:
    """The numbers of a class for each draw ``(draws, K)``."""
    there = ~np.isnan(truth.odds[:, column])
    flags = [model.flags(column)[there] for model in models]
    found = []
    for part in _parts(len(places), int(there.sum())):
        probs = truth.moved(column, places[part])[:, there]
        numbers = []
        for order, flag in zip(ranked, flags, strict=True):
            numbers += [order.average_precision(probs)[:, None], probs @ flag]
        found.append(np.concatenate(numbers, axis=1))
    return np.concatenate(found)


def _centred(values: Floats, weights: Floats) -> Floats:
    """Weighted distances from the mean: as many labels are missing as before."""
    centred: Floats = weights * (values - (weights @ values) / max(float(weights.sum()), 1e-300))
    return centred


def _covariance(gradient: Floats, weights: Floats) -> Floats:
    found: Floats = gradient.T @ (weights[:, None] * gradient)
    return found


def _parts(draws: int, size: int) -> Iterator[slice]:
    every = max(1, _ENTRIES_AT_ONCE // max(1, size))
    for start in range(0, draws, every):
        yield slice(start, start + every)
