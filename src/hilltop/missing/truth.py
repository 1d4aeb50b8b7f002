"""What is probably true of every entry of a test set, given labels and answers.

The missing-label model gives each open entry log odds. They may be off: for all entries together,
class by class, and in how steeply truth falls with the scores. Answers tell; without any, the
posterior of the label frequency does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from hilltop.missing import priors
from hilltop.missing.answers import Flags, Ints, SampledAnswers
from hilltop.missing.logistic import Counts, Floats, Prior, fit_logistic
from hilltop.missing.model import MissingLabelModel

SHARED = 3
"""Coefficients that all classes share: slope, shift and bend."""


@dataclass(frozen=True, eq=False)
class TruthPosterior:
    r"""Probabilities of truth with a posterior of their calibration.

    .. math:: \operatorname{logit} P(y_{ic}) = m_c + a (x_{ic} - m_c) + h (x_{ic} - m_c)_+ + b + d_c

    Attributes:
        odds: Log odds x that each entry is true ``(N, C)``: infinite where that is known, NaN for
            an entry that takes no part.
        levels: Log odds m of each class around which the slope turns ``(C,)``.
        coefficients: Most probable a, b, h and then d ``(3 + C,)``.
        precision: Of a, b and h, with d integrated out ``(3, 3)``.
        border: Information that d and these share ``(C, 3)``.
        class_precision: Of d ``(C,)``.
        before: Log odds before any answers.
    """

    odds: Floats
    levels: Floats
    coefficients: Floats
    precision: Floats
    border: Floats
    class_precision: Floats
    before: Floats

    @classmethod
    def of_model(cls, model: MissingLabelModel, logits: Floats, labels: Floats) -> TruthPosterior:
        """Take the posterior of the label frequency over to the open entries of a test set.

        At a label frequency c the log odds of an open entry are those of the truth plus log(1 - c),
        linear in the scores: draws of c become a normal prior of slope and shifts.

        Args:
            model: Fitted to these scores and labels.
            logits: Scores ``(N, C)``.
            labels: 1 labelled, 0 not labelled, NaN for entries that take no part.
        """
        assert model.profile is not None
        assert model.draws is not None
        assert model.score_scale is not None
        scale, offset = model.score_scale
        scores, knots = logits * scale + offset, model.profile.levels
        least = np.log1p(priors.MIN_MISSING_LABELS)
        draws = np.minimum(model.draws, -least)
        slope, shift, bend = model.profile.at(draws)
        shift = shift + knots * (1 - slope) + np.log(-np.expm1(draws))
        middle = slope.mean(axis=0), np.median(shift, axis=0), bend.mean(axis=0)
        odds = scores * middle[0] + middle[1] + middle[2] * np.maximum(scores - knots, 0.0)
        odds = np.where(labels == 1, np.inf, np.where(np.isnan(labels), np.nan, odds))
        levels = open_levels(odds)
        at = (levels - middle[1]) / middle[0]
        weight = np.maximum((model.missing.labelled * np.expm1(-draws)).mean(axis=0), 0.1)
        ratio = np.average(slope / middle[0], axis=1, weights=weight)
        moved = slope * at + shift - levels
        common = np.average(moved, axis=1, weights=weight)
        own = np.hypot((moved - common[:, None]).std(axis=0), priors.CALIBRATION_ERROR)
        error = np.zeros((SHARED, SHARED))
        error[:2, :2] = np.cov(np.stack([ratio, common]))
        error += np.eye(SHARED) * priors.CALIBRATION_ERROR**2
        mean = moved.mean(axis=0)
        start = np.concatenate([[ratio.mean(), mean.mean(), 0.0], mean - mean.mean()])
        border = np.zeros((odds.shape[1], SHARED))
        precision: Floats = np.asarray(np.linalg.inv(error), dtype=np.float64)
        return cls(odds, levels, start, precision, border, own**-2.0, odds)

    def probs(self, column: int, coefficients: Floats | None = None) -> Floats:
        """Probabilities of truth of one class ``(N,)``, or for draws of coefficients ``(D, N)``."""
        used = self.coefficients[None] if coefficients is None else coefficients
        # float32 is several times faster, and far finer than what is known of a probability.
        slope, shift, bend, own = (
            used[:, [0, 1, 2, SHARED + column]].T[:, :, None].astype(np.float32)
        )
        away = (self.odds[:, column] - self.levels[column]).astype(np.float32)
        moved = np.float32(self.levels[column]) + _bent(away, slope, bend) + shift + own
        found: Floats = expit(moved)
        return found[0].astype(np.float64) if coefficients is None else found

    def expected_answers(self, answers: SampledAnswers) -> Floats:
        """Probability of yes for each answer, had it not been given; NaN where that was known."""
        odds, levels = self.before[answers.rows, answers.columns], self.levels[answers.columns]
        slope, shift, bend = self.coefficients[:SHARED]
        moved = levels + _bent(odds - levels, slope, bend) + shift
        moved = moved + self.coefficients[SHARED + answers.columns]
        return np.where(np.isfinite(odds), expit(moved), np.nan)

    def uncertainty(self, column: int) -> tuple[Floats, Floats]:
        """Variance of each entry of a class, and how far all are off if its slope is ``(N,)``."""
        probs = np.nan_to_num(self.probs(column))
        variance = probs * (1 - probs)
        away = np.where(variance > 0, self.odds[:, column] - self.levels[column], 0.0)
        return variance, priors.CLASS_SLOPE_ERROR * variance * self.coefficients[0] * away

    def with_answers(self, answers: SampledAnswers) -> TruthPosterior:
        """Return the posterior after answers.

        Answers about entries that were open tell how far off probabilities are; all of them are
        known from now on, but for entries that take no part.
        """
        rows, columns = answers.rows, answers.columns
        odds, given = self.odds.copy(), self.odds[rows, columns]
        known = np.where(answers.present, np.inf, -np.inf)
        odds[rows, columns] = np.where(np.isnan(given), np.nan, known)
        chosen = np.isfinite(given)
        if not chosen.any():
            return replace(self, odds=odds)
        columns, away = columns[chosen], (given - self.levels[columns])[chosen]
        counts, groups = _pack(
            columns, len(self.levels), away, answers.present[chosen],
            self._evidence_weights(answers)[chosen],
        )  # fmt: skip
        features = np.stack([groups, np.ones_like(groups), np.maximum(groups, 0.0)])
        own = np.full((SHARED, len(self.levels)), np.inf)
        own[1] = self.class_precision
        prior = Prior(self.coefficients[:SHARED], self.precision, own)
        offset = self.levels + self.coefficients[SHARED:]
        fit = fit_logistic(features, offset, counts, prior)
        return replace(
            self,
            odds=odds,
            coefficients=np.concatenate([fit.shared, self.coefficients[SHARED:] + fit.by_class[1]]),
            precision=fit.precision,
            border=fit.information[:, 1],
            class_precision=self.class_precision + fit.information[:, 1, 1],
        )

    def _evidence_weights(self, answers: SampledAnswers) -> Floats:
        """How much each answer tells of the calibration, 1 on average where it tells something.

        Pairs that are drawn often lie high; fitted to them alone, no curve is right for the many
        below. Full design weights would leave a class to a few answers: theirs is the square root.
        """
        weights = np.sqrt(1 + answers.correction_weights())
        probs = np.nan_to_num(self.expected_answers(answers))
        variance = probs * (1 - probs)
        # As many answers as have this spread of weights are worth (Kish's effective sample size).
        effective: Floats = (
            weights * (weights @ variance) / max(float(weights**2 @ variance), 1e-300)
        )
        return effective

    def draws(self, number: int, rng: np.random.Generator) -> Floats:
        """Draw coefficients, in pairs on opposite sides of the mode ``(number, 3 + C)``."""
        half = rng.standard_normal((-(-number // 2), len(self.coefficients)))
        normal = np.concatenate([half, -half])[:number]
        root = np.linalg.cholesky(self.precision).T
        shared = np.linalg.solve(root, normal[:, :SHARED].T).T
        own = normal[:, SHARED:] / np.sqrt(self.class_precision)
        own = own - shared @ self.border.T / self.class_precision
        found: Floats = self.coefficients + np.concatenate([shared, own], axis=1)
        return found


def open_levels(odds: Floats) -> Floats:
    """Log odds of each class where its open entries are least certain, on average ``(C,)``."""
    inside = np.where(np.isfinite(odds), odds, 0.0)
    probs = expit(inside)
    weight = np.where(np.isfinite(odds), probs * (1 - probs), 0.0)
    found: Floats = (weight * inside).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    return found


def _bent(away: Floats, slope: Floats | float, bend: Floats | float) -> Floats:
    """Distances from the level after calibration; infinite ones stay what they are."""
    above = np.where(np.isfinite(away), np.maximum(away, 0), np.zeros_like(away))
    moved: Floats = slope * away + bend * above
    return moved


def _pack(
    columns: Ints, classes: int, away: Floats, present: Flags, weights: Floats
) -> tuple[Counts, Floats]:
    """Answers as columns of classes, padded with entries of no weight."""
    order = np.argsort(columns, kind="stable")
    numbers = np.bincount(columns, minlength=classes)
    starts = np.cumsum(numbers) - numbers
    at = np.arange(len(columns)) - starts[columns[order]], columns[order]
    shape = int(numbers.max()), classes

    def filled(values: Floats) -> Floats:
        padded = np.zeros(shape)
        padded[at] = values[order]
        return padded

    groups, none = filled(away), np.zeros(shape)
    yes, no = filled(weights * present), filled(weights * ~present)
    return Counts(groups, none, none, yes, no), groups
