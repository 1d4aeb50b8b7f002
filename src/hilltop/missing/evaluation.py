"""Evaluation: true metrics of models from a test set whose labels are incomplete."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import Tensor

from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError
from hilltop.missing import priors
from hilltop.missing.answers import (
    Flags,
    Ints,
    PlannedPairs,
    SampledAnswers,
    inclusion_probabilities,
    systematic_sample,
)
from hilltop.missing.extra_scores import combine_scores
from hilltop.missing.interval import Z_90, Interval
from hilltop.missing.logistic import Floats, as_floats
from hilltop.missing.model import MissingCounts, MissingLabelModel, describe_missing
from hilltop.missing.ranked import RankedColumn, scar_map, top_entries
from hilltop.missing.truth import TruthPosterior

TOP_KS = (1, 3, 5)
"""Precision is measured at these numbers of tags per image."""
METRICS = ("mAP", "CP", "CR", "CF1", "OP", "OR", "OF1", *(f"P@{k}" for k in TOP_KS))
SUMS = 3 + len(TOP_KS)
"""Numbers of a class and a model from which all metrics follow: average precision,
hits, positives, and hits among the first 1, 3 and 5 of each image. All but the first are sums over
entries."""
PURPOSES = {"mAP": 0.7, "OF1": 0.15, "P@3": 0.15}
"""How much the intervals of metrics count when pairs are chosen."""
MISFITS: Floats = np.geomspace(0.05, 8.0, 25)
"""How far off the model may be beyond what it says itself, in standard errors of the answers; every
order of magnitude is as probable as any other."""
DRAWS = 48
_CHOSEN = (False, True, False, *(True for _ in TOP_KS))
_ENTRIES_AT_ONCE = 2_000_000
_MIN_POSITIVES = 0.5  # a class is expected to have a positive entry, or is left out of means
_SURE, _DECIDED = 1e-6, 0.02  # distance of probabilities from 0 and 1; larger where most are 0 or 1


@dataclass(frozen=True, eq=False)
class EstimatedReport:
    """Metrics of a model, estimated from incomplete labels.

    Attributes:
        metrics: ``mAP``, ``CP`` ... ``OF1``, ``P@1``, ``P@3``, ``P@5``.
        average_precision: Of each class.
        positives: Expected number of true labels of each class ``(C,)``.
        hits: Expected number of right predictions of each class ``(C,)``.
        predicted: Predictions of each class ``(C,)``.
    """

    metrics: dict[str, Interval]
    average_precision: list[Interval]
    positives: Floats
    hits: Floats
    predicted: Floats


@dataclass(frozen=True)
class ModelComparison:
    """How much better the first of two models is.

    Attributes:
        differences: Of each metric, first less second.
        first_better: Probability that the first has the higher mAP.
        answers_needed: How many more answers it takes until it is 95% sure which one is better, if
            the difference is what it seems; None if no number of answers would do.
    """

    differences: dict[str, Interval]
    first_better: float
    answers_needed: int | None


class Evaluation:
    """A test set with incomplete labels, and models that did not learn from it.

    Labels that are there are taken to be right. What is missing is estimated from the scores by a
    :class:`MissingLabelModel`, and from answers of people, if there are any: with answers that were
    drawn at random the estimates are right even where scores mislead.

    Args:
        probs: Probabilities by each model ``(N, C)``.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part ``(N, C)``.
        verified: True where a person verified that an entry is absent.
        answers: What people said of single pairs.
        threshold: Above it is a prediction; one number, or one for each class.
        thresholds: The same for each model, where they differ.
        harmonic: Whether CF1 is the harmonic mean of CP and CR.

    Raises:
        ArgumentError: There is no label at all, or scores are not probabilities.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(-2, 3, (2000, 4))
        >>> true = rng.random((2000, 4)) < 1 / (1 + np.exp(-logits))
        >>> recorded = true & (rng.random((2000, 4)) < 0.4)
        >>> test = Evaluation([1 / (1 + np.exp(-logits))], recorded)
        >>> found = test.report().metrics["OP"]
        >>> bool(found.low < true[logits > 0].mean() < found.high)
        True
    """

    def __init__(
        self,
        probs: Sequence[Any],
        targets: Any,
        *,
        verified: Any = None,
        answers: SampledAnswers | None = None,
        threshold: Any = 0.5,
        thresholds: Sequence[Any] | None = None,
        harmonic: bool = False,
    ) -> None:
        """Fit the missing-label model, and take in the answers."""
        labels, scores = as_floats(targets), [as_floats(one) for one in probs]
        for one in scores:
            check_same_shape("probs", one.shape, "targets", labels.shape)
        if not (labels == 1).any():
            raise ArgumentError(
                f"None of the {len(labels)} rows has a label: nothing tells what is missing."
                " Label some of them first."
            )
        logits = [_logits(one) for one in scores]
        joined, self._apart = logits[0], None
        if len(logits) > 1:
            joined, weights = combine_scores(logits, labels)
            self._apart = weights * (logits[0] - logits[1])
        self.model = MissingLabelModel.fit(joined, labels, verified=verified)
        known = ~np.isnan(labels)
        if verified is not None:
            absent = (as_floats(verified) == 1) & (labels == 0)
        else:
            absent = np.zeros(labels.shape, dtype=bool)
        self._before = _prior(self.model, joined, labels, absent)
        self.answers = SampledAnswers.none() if answers is None else answers
        self.truth = self._before.with_answers(self.answers)
        limits = [threshold] * len(scores) if thresholds is None else thresholds
        self.models = [
            _Scored.of(one, limit, known) for one, limit in zip(scores, limits, strict=True)
        ]
        self._harmonic, self._labels = harmonic, labels

    def with_answers(self, answers: SampledAnswers) -> Evaluation:
        """Return the same evaluation with other answers."""
        test = copy(self)
        test.answers, test.truth = answers, self._before.with_answers(answers)
        test.__dict__.pop("_sums", None)
        return test

    @property
    def missing(self) -> Interval:
        """How many labels are missing: the model's number, corrected by answers."""
        if not len(self.answers):
            return self.model.missing.total
        positives = _estimate(self._sums, lambda sums: sums[..., 2].sum(dim=-1, keepdim=True))
        labelled, found = self.model.missing.labelled.sum(), float(self.answers.present.sum())
        value = max(float(positives.mean[0]) - labelled, found)
        interval = Interval.of_normal(value, float(positives.error[0]))
        return Interval(value, max(interval.low, found), max(interval.high, found))

    def describe(self) -> str:
        """Return the sentence about missing labels."""
        if not len(self.answers):
            return self.model.describe()
        found = self.model.missing
        counts = MissingCounts(self.missing, found.by_class, found.labelled)
        return describe_missing(
            self.model.kind, counts, ratio=self.model.ratio, answers=len(self.answers)
        )

    @cached_property
    def _sums(self) -> _Sums:
        drawn = self.truth.draws(DRAWS, np.random.default_rng(0))
        return _sum_up(self.models, self.truth, self.answers, drawn, self._apart)

    def report(self, model: int = 0) -> EstimatedReport:
        """Estimate all metrics of a model."""
        found = _estimate(self._sums, self._metrics(model))
        first = model * SUMS
        hits, positives = (self._sums.of_class(first + at).mean for at in (1, 2))
        return EstimatedReport(
            dict(zip(METRICS, found.shares(), strict=True)),
            self._sums.of_class(first, shares=True).shares(),
            positives=np.maximum(positives, 0.0),
            hits=np.maximum(hits, 0.0),
            predicted=self.models[model].predicted.sum(axis=0).astype(np.float64),
        )

    def compare(self, first: int = 0, second: int = 1) -> ModelComparison:
        """Say which of two models is better, how sure that is, and what it takes to be sure."""
        difference = self._difference(first, second)
        found = _estimate(self._sums, difference, shares=False)
        gradient, probs = self._open_gradients(difference)
        if not len(self.answers) and self.model.kind != "complete":
            # Scores that make up the truth would judge themselves; the labels do not.
            found.mean[0] = self._scar_map(first) - self._scar_map(second)
        mean, error = float(found.mean[0]), float(found.error[0])
        sure = float(stats.norm.cdf(mean / error)) if error else float(mean > 0)
        needed = _answers_needed(mean, error, gradient[:, 0], probs)
        pairs = zip(METRICS, found.mean, found.error, strict=True)
        differences = {name: Interval.of_normal(value, one) for name, value, one in pairs}
        return ModelComparison(differences, sure, needed)

    def _scar_map(self, model: int) -> float:
        """The mAP of a model by the labels alone, at the label frequencies of classes."""
        missing = self.model.missing
        frequency = missing.labelled / np.maximum(missing.labelled + missing.by_class[0], 1e-9)
        return scar_map(self.models[model].scores, self._labels, frequency)

    def plan(self, number: int, *, seed: int = 0) -> PlannedPairs:
        r"""Draw pairs to ask a person about, so that intervals become narrow soonest (Neyman).

        .. math:: \pi_i \propto |\partial \theta / \partial y_i| \sqrt{p_i (1 - p_i)}

        With two models it is the interval of their difference.

        Args:
            number: How many pairs.
            seed: Of the draw.
        """
        two = len(self.models) > 1
        gradient, probs = self._open_gradients(self._difference(0, 1) if two else self._metrics(0))
        spread = np.sqrt(probs * (1 - probs) + priors.MIN_SAMPLING_SD**2)
        total = np.zeros(len(probs))
        for name, weight in PURPOSES.items():
            size = np.abs(gradient[:, METRICS.index(name)]) * spread
            total += weight * (size / max(size.sum(), 1e-300)) ** 2
        sizes = np.sqrt(total) if total.any() else np.ones_like(total)
        inclusion = inclusion_probabilities(sizes, number)
        drawn = systematic_sample(inclusion, np.random.default_rng(seed))
        columns, rows = np.nonzero(np.isfinite(self.truth.odds.T))
        return PlannedPairs(rows[drawn], columns[drawn], probs[drawn], inclusion[drawn])

    def _open_gradients(self, metrics: Callable[[Tensor], Tensor]) -> tuple[Floats, Floats]:
        """How much each open entry moves each metric ``(pairs, metrics)``, and its probability."""
        jacobian = _jacobian(metrics, self._sums)
        gradients, probs = [], []
        for column in range(self.truth.odds.shape[1]):
            still = np.isfinite(self.truth.odds[:, column])
            gradient = _ClassScores(self.models, self.truth, column).gradient()[still]
            gradients.append(gradient @ jacobian[:, column].T)
            probs.append(self.truth.probs(column)[still])
        return np.concatenate(gradients), np.concatenate(probs)

    def _metrics(self, model: int) -> Callable[[Tensor], Tensor]:
        predicted = torch.from_numpy(self.models[model].predicted.sum(axis=0).astype(np.float64))
        mine = slice(model * SUMS, (model + 1) * SUMS)
        counted = (torch.from_numpy(self._sums.middle[:, mine])[:, 2] >= _MIN_POSITIVES).double()
        images, harmonic = len(self.truth.odds), self._harmonic
        return lambda sums: metrics_of_sums(
            sums[..., mine], predicted, counted, images=images, harmonic=harmonic
        )

    def _difference(self, first: int, second: int) -> Callable[[Tensor], Tensor]:
        one, other = self._metrics(first), self._metrics(second)
        return lambda sums: one(sums) - other(sums)


def metrics_of_sums(
    sums: Tensor, predicted: Tensor, counted: Tensor, *, images: int, harmonic: bool
) -> Tensor:
    """Return all metrics of one model, in the order of ``METRICS`` ``(..., metrics)``.

    Args:
        sums: Numbers of each class ``(..., C, 6)``.
        predicted: Predictions of each class ``(C,)``.
        counted: Which classes have positives ``(C,)``.
        images: Number of images.
        harmonic: Whether CF1 is the harmonic mean of CP and CR.
    """
    average_precision, hits, positives, *tops = sums.unbind(dim=-1)

    def mean(values: Tensor) -> Tensor:
        return (values * counted).sum(dim=-1) / counted.sum().clamp(min=1)

    def f1(precision: Tensor, recall: Tensor) -> Tensor:
        return 2 * precision * recall / (precision + recall).clamp(min=1e-9)

    cp = mean(hits / predicted.clamp(min=1))
    cr = mean(hits / positives.clamp(min=1e-9))
    op = hits.sum(dim=-1) / predicted.sum().clamp(min=1)
    recall = hits.sum(dim=-1) / positives.sum(dim=-1).clamp(min=1e-9)
    cf1 = f1(cp, cr) if harmonic else mean(2 * hits / (predicted + positives).clamp(min=1e-9))
    classes = sums.shape[-2]
    top = [
        found.sum(dim=-1) / max(1, images * min(k, classes))
        for found, k in zip(tops, TOP_KS, strict=True)
    ]
    return torch.stack([mean(average_precision), cp, cr, cf1, op, recall, f1(op, recall), *top], -1)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of one model ``(N, C)``, what it predicts, and what it puts first for each image."""

    scores: npt.NDArray[Any]
    predicted: Flags
    top: tuple[Flags, ...]

    @classmethod
    def of(cls, scores: npt.NDArray[Any], threshold: Any, known: Flags) -> _Scored:
        predicted = (scores.astype(np.float64) > threshold) & known
        return cls(scores, predicted, top_entries(scores, known, TOP_KS))


class _ClassScores:
    """One class of all models, ready for many probabilities of truth."""

    def __init__(self, models: Sequence[_Scored], truth: TruthPosterior, column: int) -> None:
        self._truth, self._column = truth, column
        self.there = ~np.isnan(truth.odds[:, column])
        self._ranked = [RankedColumn(model.scores[self.there, column]) for model in models]
        every = np.ones(int(self.there.sum()))
        self._flags = [
            np.stack(
                [
                    model.predicted[self.there, column],
                    every,
                    *(top[self.there, column] for top in model.top),
                ],
                axis=1,
            ).astype(np.float64)
            for model in models
        ]

    def sums(self, coefficients: Floats) -> Floats:
        """The numbers of the class for each draw of the calibration ``(draws, K)``."""
        every = max(1, _ENTRIES_AT_ONCE // max(1, int(self.there.sum())))
        found = []
        for first in range(0, len(coefficients), every):
            part = coefficients[first : first + every]
            probs = self._truth.probs(self._column, part)[:, self.there]
            numbers = []
            for ranked, flags in zip(self._ranked, self._flags, strict=True):
                numbers += [ranked.average_precision(probs)[:, None], probs @ flags]
            found.append(np.concatenate(numbers, axis=1))
        return np.concatenate(found)

    def gradient(self) -> Floats:
        """How much each number of the class grows with each entry's probability ``(N, K)``."""
        probs = self._truth.probs(self._column)[self.there]
        gradient = np.zeros((len(self.there), SUMS * len(self._ranked)))
        for number, (ranked, flags) in enumerate(zip(self._ranked, self._flags, strict=True)):
            first = number * SUMS
            gradient[self.there, first] = ranked.gradient(probs)
            gradient[self.there, first + 1 : first + SUMS] = flags
        return gradient


@dataclass(frozen=True, eq=False)
class _Moments:
    """Estimates with their standard errors, one entry per metric."""

    mean: Floats
    error: Floats

    def shares(self) -> list[Interval]:
        pairs = zip(self.mean.tolist(), self.error.tolist(), strict=True)
        return [Interval.of_share(value, error) for value, error in pairs]


@dataclass(frozen=True, eq=False)
class _Sums:
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

    def of_class(self, number: int, *, shares: bool = False) -> _Moments:
        """Estimate one number of every class; ``shares`` for average precision."""
        return _combine(
            self.middle[:, number],
            self.draws[:, :, number],
            self.spread[:, number, number],
            self.correction[:, number],
            self.sampling[:, :, number, number].max(axis=0),
            shares=shares,
        )


def _sum_up(
    models: Sequence[_Scored],
    truth: TruthPosterior,
    answers: SampledAnswers,
    drawn: Floats,
    apart: Floats | None,
) -> _Sums:
    """Find the numbers of every class."""
    classes, size = truth.odds.shape[1], SUMS * len(models)
    sums = _Sums(
        np.zeros((classes, size)),
        np.zeros((len(drawn), classes, size)),
        np.zeros((classes, size, size)),
        np.zeros((2, classes, size)),
        np.zeros((classes, size)),
        np.zeros((2, classes, size, size)),
    )
    counted, squared = answers.correction_weights(), answers.variance_weights()
    expected = truth.expected_answers(answers)
    drawn = np.concatenate([truth.coefficients[None], drawn])
    for column in range(classes):
        scores = _ClassScores(models, truth, column)
        found, gradient = scores.sums(drawn), scores.gradient()
        sums.middle[column], sums.draws[:, column] = found[0], found[1:]
        variance, by_slope = truth.uncertainty(column)
        off = by_slope @ gradient
        sums.spread[column] = _covariance(gradient, variance) + np.outer(off, off)
        chosen = np.array(_CHOSEN * len(models))
        sums.misfit[0, column] = priors.CHOICE_ERROR * (variance @ gradient) * chosen
        if apart is not None:
            # As many labels are missing as before: weighted distances from the mean.
            mean = (variance @ apart[:, column]) / max(float(variance.sum()), 1e-300)
            moved = variance * (apart[:, column] - mean)
            sums.misfit[1, column] = priors.BLEND_ERROR * moved @ gradient
        mine = (answers.columns == column) & ~np.isnan(expected)
        if mine.any():
            moves, probs = gradient[answers.rows[mine]], expected[mine]
            residual = answers.present[mine] - probs
            sums.correction[column] = (counted[mine] * residual) @ moves
            sums.sampling[0, column] = _covariance(moves, squared[mine] * residual**2)
            sums.sampling[1, column] = _covariance(moves, squared[mine] * probs * (1 - probs))
    return sums


def _estimate(sums: _Sums, metrics: Callable[[Tensor], Tensor], *, shares: bool = True) -> _Moments:
    """Estimate metrics that follow from the numbers of classes, by the delta method.

    Args:
        sums: The numbers of classes.
        metrics: From ``(..., C, K)`` to ``(..., metrics)``.
        shares: Whether metrics lie between 0 and 1; differences and counts do not.
    """
    draws = metrics(torch.from_numpy(sums.draws)).numpy()
    middle = metrics(torch.from_numpy(sums.middle)).numpy()
    jacobian = _jacobian(metrics, sums)
    spread = np.einsum("mck,ckl,mcl->m", jacobian, sums.spread, jacobian, optimize=True)
    spread += (np.einsum("mck,fck->mf", jacobian, sums.misfit) ** 2).sum(axis=1)
    sampling = np.einsum("mck,sckl,mcl->sm", jacobian, sums.sampling, jacobian, optimize=True)
    correction = np.einsum("mck,ck->m", jacobian, sums.correction)
    shares = shares and bool((middle <= 1).all())
    return _combine(
        middle, draws, np.maximum(spread, 0.0), correction, sampling.max(axis=0), shares=shares
    )


def _combine(
    middle: Floats,
    draws: Floats,
    spread: Floats,
    correction: Floats,
    sampling: Floats,
    *,
    shares: bool,
) -> _Moments:
    r"""Weigh what the model expects against what answers correct.

    .. math::
        \hat\theta = \theta_0 + \lambda \Delta, \qquad
        \lambda = \frac{V + \tau^2}{V + \tau^2 + S}, \qquad
        P(\tau \mid \Delta) \propto N(\Delta; 0, V + \tau^2 + S) / \tau

    The corrected value is unbiased with variance S, whatever the model says. The truth is V off the
    model, as it says itself, and no model is quite right: by how much more, :math:`\tau`, is known
    from what answers show of it. Estimate and interval are means over it.

    Args:
        middle: What the model expects at its most probable calibration.
        draws: The same for draws of the calibration.
        spread: Variance V of the truth around it.
        correction: Difference of the unbiased estimate from ``middle``.
        sampling: Variance S of the correction; 0 without answers.
        shares: Whether numbers lie between 0 and 1.
    """
    calibration = draws.var(axis=0)
    expected, alone = draws.mean(axis=0), np.sqrt(calibration + spread)
    least = np.zeros_like(middle)
    if shares:  # near 1 all that is uncertain makes a share smaller: means of log odds
        inside = np.clip(draws, 1e-4, 1 - 1e-4)
        odds = np.log(inside) - np.log1p(-inside)
        mean = 1 / (1 + np.exp(-odds.mean(axis=0)))
        expected = np.where(np.ptp(draws, axis=0) > 0, mean, draws[0])
        alone = np.sqrt(odds.var(axis=0) * (expected * (1 - expected)) ** 2 + spread)
        least = priors.MIN_MISFIT * middle * (1 - middle)
    asked = sampling > 0
    noise = np.where(asked, sampling, 1.0)
    off = spread + least**2 + MISFITS[:, None] ** 2 * noise  # V and tau^2, for each tau
    share = off / (off + noise)
    logs = -0.5 * (correction**2 / (off + noise) + np.log(off + noise))
    weight = np.exp(logs - logs.max(axis=0))
    weight /= weight.sum(axis=0)
    # Calibration and correction come from the same answers: their errors are taken to add up.
    kept = (1 - share) * np.sqrt(calibration) + share * np.sqrt(noise)
    left = kept**2 + (1 - share) ** 2 * off
    shift = (weight * share).sum(axis=0) * correction
    variance = (weight * (left + (share * correction - shift) ** 2)).sum(axis=0)
    return _Moments(
        np.where(asked, middle + shift, expected), np.where(asked, np.sqrt(variance), alone)
    )


def _jacobian(metrics: Callable[[Tensor], Tensor], sums: _Sums) -> Floats:
    """Derivatives of metrics by the numbers of classes ``(metrics, C, K)``."""
    middle = torch.from_numpy(sums.middle)
    found = torch.autograd.functional.jacobian(metrics, middle)  # type: ignore[no-untyped-call]
    jacobian: Floats = found.numpy()
    return jacobian


def _covariance(gradient: Floats, weights: Floats) -> Floats:
    found: Floats = gradient.T @ (weights[:, None] * gradient)
    return found


def _answers_needed(mean: float, error: float, gradient: Floats, probs: Floats) -> int | None:
    """Answers whose own estimate, added to what is known, is narrow enough."""
    wanted = abs(mean) / Z_90
    if error <= wanted:
        return 0
    if not wanted:
        return None
    # The variance that n answers leave is this over n, at best sampling probabilities.
    single = float((np.abs(gradient) * np.sqrt(probs * (1 - probs))).sum()) ** 2
    return min(math.ceil(single * (wanted**-2 - error**-2)), len(gradient))


def _prior(
    model: MissingLabelModel, logits: Floats, labels: Floats, absent: Flags
) -> TruthPosterior:
    """What is probably true before answers; verified entries are known."""
    if model.kind == "complete":
        odds = np.where(labels == 1, np.inf, np.where(np.isnan(labels), np.nan, -np.inf))
        classes = labels.shape[1]
        start = np.concatenate([[1.0], np.zeros(classes + 2)])
        return TruthPosterior(
            odds,
            np.zeros(classes),
            start,
            np.eye(3),
            np.zeros((classes, 3)),
            np.ones(classes),
            odds,
        )
    truth = TruthPosterior.of_model(model, logits, labels)
    truth.odds[absent] = -np.inf
    truth.before[absent] = -np.inf
    return truth


def _logits(probs: Any) -> Floats:
    values = np.asarray(probs, dtype=np.float64)
    outside = values[(values < 0) | (values > 1) | np.isnan(values)]
    if outside.size:
        raise ArgumentError(
            "Scores must be probabilities, between 0 and 1, where labels are incomplete, but got"
            f" {float(outside[0])!r}. Put logits through a sigmoid."
        )
    decided = ((values <= _SURE) | (values >= 1 - _SURE)).mean()
    edge = _DECIDED if decided > 0.5 else _SURE
    inside = np.clip(values, edge, 1 - edge)
    logits: Floats = np.log(inside) - np.log1p(-inside)
    return logits


__all__ = ["METRICS", "EstimatedReport", "Evaluation", "Ints", "ModelComparison"]
