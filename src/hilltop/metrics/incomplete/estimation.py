"""IncompleteTest: true scores of models from a test set whose labels are incomplete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration.sampling import inclusion_probabilities, systematic_sample
from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError
from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.answers import Ints, SampledAnswers
from hilltop.metrics.incomplete.class_sums import (
    SUMS,
    ClassSums,
    pair_gradient,
    rank_column,
    sum_up,
)
from hilltop.metrics.incomplete.comparison import ModelComparison, compare_moments
from hilltop.metrics.incomplete.from_labels import truth_from_labels
from hilltop.metrics.incomplete.judged_model import JudgedModel
from hilltop.metrics.incomplete.metrics_of_sums import NAMES, metrics_of_sums, sums_of_model
from hilltop.metrics.incomplete.moments import (
    MetricEstimate,
    estimate_by_class,
    estimate_moments,
    jacobian_of,
)
from hilltop.metrics.incomplete.plan import (
    PlannedPairs,
    sampling_sizes,
)

DRAWS = 48
"""Draws of the calibration."""
_LEAST_POSITIVES = 0.5  # a class is expected to have a positive entry, or is left out of means


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

    metrics: dict[str, MetricEstimate]
    average_precision: list[MetricEstimate]
    positives: Floats
    hits: Floats
    predicted: Floats


class IncompleteTest:
    """A test set with incomplete labels, and models that never saw it.

    Labels that are there are taken to be right. What is missing is estimated from the scores, and
    from answers of people, if there are any: with answers that were drawn at random the estimates
    are right even where scores mislead.

    Args:
        probs: Probabilities by each model ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled, NaN for a pair that takes no part ``(N, C)``.
        observed: True where a person confirmed that a pair is absent.
        answers: What people said of single pairs.
        threshold: Above it is a prediction; one number, or one for each class.
        thresholds: The same for each model, where they differ.
        harmonic: Whether CF1 is the harmonic mean of CP and CR.
        draws: Draws of the calibration; with fewer, ends of intervals are found less exactly.

    Raises:
        ArgumentError: There is no label at all, or scores are not probabilities.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(-2, 3, (2000, 4))
        >>> true = rng.random((2000, 4)) < 1 / (1 + np.exp(-logits))
        >>> kept = true & (rng.random((2000, 4)) < 0.4)
        >>> test = IncompleteTest([1 / (1 + np.exp(-logits))], kept)
        >>> found = test.report().metrics["OP"]
        >>> bool(found.low < true[logits > 0].mean() < found.high)
        True
    """

    def __init__(
        self,
        probs: Sequence[Any],
        targets: Any,
        *,
        observed: Any = None,
        answers: SampledAnswers | None = None,
        threshold: Any = 0.5,
        thresholds: Sequence[Any] | None = None,
        harmonic: bool = False,
        draws: int = DRAWS,
    ) -> None:
        """Find out how labels were lost, and take in the answers."""
        labels = np.asarray(targets, dtype=np.float32)
        scores = [np.asarray(one) for one in probs]
        for one in scores:
            check_same_shape("probs", one.shape, "targets", labels.shape)
        if not (labels == 1).any():
            raise ArgumentError(
                f"None of the {len(labels)} rows has a label: nothing tells what is missing."
                " Label some of them first."
            )
        before, founded = truth_from_labels(scores, labels, observed=observed)
        self.sentence = founded.belief.sentence
        self._apart = None if founded.apart is None else founded.apart.double().numpy()
        self.answers = SampledAnswers.none() if answers is None else answers
        self.truth = before.with_answers(self.answers)
        known = ~np.isnan(before.odds)
        limits = [threshold] * len(scores) if thresholds is None else thresholds
        self.models = [
            JudgedModel.of(one, limit, known) for one, limit in zip(scores, limits, strict=True)
        ]
        self._before, self._harmonic, self._draws = before, harmonic, draws

    def with_answers(self, answers: SampledAnswers) -> IncompleteTest:
        """Return the same test with other answers."""
        test = copy(self)
        test.answers, test.truth = answers, self._before.with_answers(answers)
        test.__dict__.pop("_sums", None)
        return test

    @cached_property
    def _sums(self) -> ClassSums:
        places = self.truth.draws(self._draws, np.random.default_rng(0))
        return sum_up(self.models, self.truth, self.answers, places, apart=self._apart)

    def report(self, model: int = 0) -> EstimatedReport:
        """Estimate all metrics of a model."""
        found = estimate_moments(self._sums, self._metrics(model)).shares()
        first = model * SUMS
        hits, positives = (estimate_by_class(self._sums, first + at).mean for at in (1, 2))
        return EstimatedReport(
            dict(zip(NAMES, found, strict=True)),
            estimate_by_class(self._sums, first, shares=True).shares(),
            positives=np.maximum(positives, 0.0),
            hits=np.maximum(hits, 0.0),
            predicted=self.models[model].predicted.sum(axis=0).astype(np.float64),
        )

    def compare(self, first: int = 0, second: int = 1) -> ModelComparison:
        """Say which of two models is better, how sure that is, and what it takes to be sure."""
        difference = self._difference(first, second)
        moments = estimate_moments(self._sums, difference, shares=False)
        gradient, probs = self._open_gradients(difference)
        return compare_moments(NAMES, moments, gradient[:, 0], probs)

    def plan(self, number: int, *, seed: int = 0) -> PlannedPairs:
        """Draw pairs to ask a person about, so that intervals become narrow soonest.

        With two models it is the interval of their difference.

        Args:
            number: How many pairs.
            seed: Of the draw.
        """
        two = len(self.models) > 1
        gradient, probs = self._open_gradients(self._difference(0, 1) if two else self._metrics(0))
        inclusion = inclusion_probabilities(sampling_sizes(gradient, probs), number)
        drawn = systematic_sample(inclusion, np.random.default_rng(seed))
        rows, columns = self._open_pairs()
        return PlannedPairs(rows[drawn], columns[drawn], probs[drawn], inclusion[drawn])

    def _open_pairs(self) -> tuple[Ints, Ints]:
        """Pairs that nobody answered, class by class."""
        columns, rows = np.nonzero(np.isfinite(self.truth.odds.T))
        return rows, columns

    def _open_gradients(self, metrics: Callable[[Tensor], Tensor]) -> tuple[Floats, Floats]:
        """How much each open pair moves each metric ``(pairs, metrics)``, and its probability."""
        jacobian = jacobian_of(metrics, self._sums)
        gradients, probs = [], []
        for column in range(self.truth.odds.shape[1]):
            still = np.isfinite(self.truth.odds[:, column])
            ranked = rank_column(self.models, self.truth, column)
            moved = pair_gradient(self.models, self.truth, column, ranked)[still]
            gradients.append(moved @ jacobian[:, column].T)
            probs.append(self.truth.probs(column)[still])
        return np.concatenate(gradients), np.concatenate(probs)

    def _metrics(self, model: int) -> Callable[[Tensor], Tensor]:
        predicted = torch.from_numpy(self.models[model].predicted.sum(axis=0).astype(np.float64))
        positives = sums_of_model(torch.from_numpy(self._sums.middle), model)[:, 2]
        counted = (positives >= _LEAST_POSITIVES).double()

        def metrics(sums: Tensor) -> Tensor:
            return metrics_of_sums(
                sums_of_model(sums, model),
                predicted,
                counted,
                images=len(self.truth.odds),
                harmonic=self._harmonic,
            )

        return metrics

    def _difference(self, first: int, second: int) -> Callable[[Tensor], Tensor]:
        one, other = self._metrics(first), self._metrics(second)
        return lambda sums: one(sums) - other(sums)
