"""What is probably true of every pair, given labels and answers, and how far off that may be.

The observation model gives each open pair a probability. It may be off: all together, class by
class, and in how steeply truth falls with the scores. Answers tell; without any, a prior does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.answers import SampledAnswers

SLOPE_ERROR = 0.5
"""How far off the slope may be, as a standard deviation of its logarithm."""
OWN_SLOPE_ERROR = 0.3
"""The same for each class by itself, which answers are too few to tell."""
BEND_ERROR = 0.4
"""How much steeper or flatter truth may rise above the middle than below: where clear cases were
written down first, what is left of them is less probable than the rest lets expect."""
SHARED = 3
"""Numbers that all classes share: a slope, a shift and a bend."""
_NEWTON_STEPS = 20


@dataclass(frozen=True, eq=False)
class TruthPosterior:
    r"""Probabilities of truth with a posterior of their calibration.

    .. math::
        \operatorname{logit} P(y_{ic}) = m_c + e^a (x_{ic} - m_c) + h (x_{ic} - m_c)_+ + b + d_c

    Attributes:
        odds: Log odds x that each pair is true ``(N, C)``: infinite where that is known, NaN for a
            pair that takes no part.
        middle: Log odds m of each class around which the slope turns ``(C,)``.
        place: Most probable a, b, h and d ``(3 + C,)``.
        shared: Precision of a, b and h ``(3, 3)``.
        border: Precision between these and d ``(3, C)``.
        own: Precision of d ``(C,)``.
        before: Log odds before any answers.
    """

    odds: Floats
    middle: Floats
    place: Floats
    shared: Floats
    border: Floats
    own: Floats
    before: Floats

    @classmethod
    def of(
        cls,
        odds: Floats,
        middle: Floats,
        *,
        slope: float,
        shift: Floats,
        common_error: Floats,
        own_error: Floats,
    ) -> TruthPosterior:
        """Return what is known without answers.

        Args:
            odds: As in the class.
            middle: As in the class.
            slope: What is expected of the logarithm of the slope.
            shift: What is expected to be missing from the odds of each class.
            common_error: How far off slope and shift of all classes may be: their covariance.
            own_error: How far off the shift of each class may be besides ``(C,)``.
        """
        place = np.concatenate([[slope, shift.mean(), 0.0], shift - shift.mean()])
        shared = np.diag([0.0, 0.0, BEND_ERROR**-2])
        shared[:2, :2] = np.linalg.inv(common_error)
        border = np.zeros((SHARED, odds.shape[1]))
        return cls(odds, middle, place, shared, border, own_error**-2.0, odds)

    def moved(self, column: int, places: Floats) -> Floats:
        """Probabilities of truth of one class, for each place ``(places, N)``; NaN as in odds.

        Args:
            column: Number of the class.
            places: a, b, h and d ``(places, 3 + C)``.
        """
        # float32 is several times faster, and far finer than what is known of a probability.
        used = places[:, [0, 1, 2, SHARED + column]].T[:, :, None].astype(np.float32)
        slope, shift, bend, own_shift = used
        apart = (self.odds[:, column] - self.middle[column]).astype(np.float32)
        moved = _moved(apart, np.exp(slope), bend)
        return expit(np.float32(self.middle[column]) + moved + shift + own_shift)

    def probs(self, column: int) -> Floats:
        """Most probable probabilities of truth of one class ``(N,)``."""
        probs: Floats = self.moved(column, self.place[None])[0].astype(np.float64)
        return probs

    def expected_answers(self, answers: SampledAnswers) -> Floats:
        """Probability of yes for each answer, had it not been given; NaN where that was known."""
        odds, middle = self.before[answers.rows, answers.columns], self.middle[answers.columns]
        slope, shift, bend = self.place[:SHARED]
        moved = _moved(odds - middle, np.exp(slope), bend)
        probs = expit(middle + moved + shift + self.place[SHARED + answers.columns])
        return np.where(np.isfinite(odds), probs, np.nan)

    def uncertainty(self, column: int) -> tuple[Floats, Floats]:
        """Variance of each pair of a class, and how far all are off if its slope is ``(N,)``."""
        probs = np.nan_to_num(self.probs(column))
        variance = probs * (1 - probs)
        apart = np.where(variance > 0, self.odds[:, column] - self.middle[column], 0.0)
        return variance, OWN_SLOPE_ERROR * variance * np.exp(self.place[0]) * apart

    def with_answers(self, answers: SampledAnswers) -> TruthPosterior:
        """Return the posterior after answers, by Newton's method and Laplace's approximation.

        Answers about pairs that were open tell how far off probabilities are; all of them are known
        from now on, but for pairs that take no part.
        """
        rows, columns = answers.rows, answers.columns
        odds, given = self.odds.copy(), self.odds[rows, columns]
        odds[rows, columns] = np.where(
            np.isnan(given), np.nan, np.where(answers.present, np.inf, -np.inf)
        )
        open_pairs = np.isfinite(given)
        rows, columns = rows[open_pairs], columns[open_pairs]
        evidence = _Evidence(
            self.odds[rows, columns] - self.middle[columns],
            self.middle[columns],
            columns,
            answers.present[open_pairs].astype(np.float64),
            self._evidence_weights(answers)[open_pairs],
        )
        return replace(_newton(self, evidence), odds=odds)

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
        """Draw places, in pairs on opposite sides of the most probable ``(number, 3 + C)``."""
        half = rng.standard_normal((-(-number // 2), len(self.place)))
        normal = np.concatenate([half, -half])[:number]
        reduced = self.shared - self.border / self.own @ self.border.T
        shared = np.linalg.solve(np.linalg.cholesky(reduced).T, normal[:, :SHARED].T).T
        own = normal[:, SHARED:] / np.sqrt(self.own) - shared @ self.border / self.own
        drawn: Floats = self.place + np.concatenate([shared, own], axis=1)
        return drawn


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Answers as a logistic regression sees them."""

    apart: Floats
    middle: Floats
    columns: np.typing.NDArray[np.int64]
    present: Floats
    weights: Floats

    def odds(self, place: Floats) -> Floats:
        slope, shift, bend = place[:SHARED]
        moved = _moved(self.apart, np.exp(slope), bend)
        odds: Floats = self.middle + moved + shift + place[SHARED + self.columns]
        return odds

    def features(self, place: Floats) -> Floats:
        """Derivatives of the odds by what classes share ``(3, answers)``."""
        by_slope = np.exp(place[0]) * self.apart
        return np.stack([by_slope, np.ones_like(self.apart), np.maximum(self.apart, 0)])

    def cost(self, place: Floats) -> float:
        odds = self.odds(place)
        return float(self.weights @ (np.logaddexp(0, odds) - self.present * odds))


def _newton(prior: TruthPosterior, evidence: _Evidence) -> TruthPosterior:
    """The posterior; Fisher's information is an arrow matrix, solved block by block."""

    def cost(place: Floats) -> float:
        off = place - prior.place
        shared, own = off[:SHARED], off[SHARED:]
        quadratic = shared @ prior.shared @ shared + 2 * shared @ prior.border @ own
        return evidence.cost(place) + float(quadratic + (prior.own * own**2).sum()) / 2

    place, now = prior.place, cost(prior.place)
    for _ in range(_NEWTON_STEPS):
        found = _information(prior, evidence, place)
        step, length = _newton_step(prior, evidence, found, place), 1.0
        while length > 1e-3 and cost(place - length * step) > now:
            length /= 2
        tried = place - length * step
        gain, place, now = now - cost(tried), tried, cost(tried)
        if gain < 1e-6:
            break
    return replace(_information(prior, evidence, place), place=place)


def _information(prior: TruthPosterior, evidence: _Evidence, place: Floats) -> TruthPosterior:
    """The prior's precision with that of the answers added."""
    probs, features = expit(evidence.odds(place)), evidence.features(place)
    weight, classes = evidence.weights * probs * (1 - probs), len(prior.own)
    border = [np.bincount(evidence.columns, weight * row, classes) for row in features]
    return replace(
        prior,
        shared=prior.shared + features @ (weight * features).T,
        border=prior.border + np.stack(border),
        own=prior.own + np.bincount(evidence.columns, weight, classes),
    )


def _newton_step(
    prior: TruthPosterior, evidence: _Evidence, found: TruthPosterior, place: Floats
) -> Floats:
    residual = evidence.weights * (expit(evidence.odds(place)) - evidence.present)
    off = place - prior.place
    shared = evidence.features(place) @ residual
    shared = shared + prior.shared @ off[:SHARED] + prior.border @ off[SHARED:]
    by_class = np.bincount(evidence.columns, residual, len(prior.own))
    own = by_class + prior.own * off[SHARED:] + off[:SHARED] @ prior.border
    reduced = found.shared - found.border / found.own @ found.border.T
    step = np.linalg.solve(reduced, shared - found.border @ (own / found.own))
    return np.concatenate([step, (own - step @ found.border) / found.own])


def _moved(apart: Floats, slope: Any, bend: Any) -> Floats:
    """Distances from the middle after calibration; infinite ones stay what they are."""
    above = np.where(np.isfinite(apart), np.maximum(apart, 0), np.zeros_like(apart))
    moved: Floats = slope * apart + bend * above
    return moved


def expit(odds: Floats) -> Floats:
    """The logistic function, without overflow."""
    half = np.asarray(odds).dtype.type(0.5)
    probs: Floats = half + half * np.tanh(half * odds)
    return probs


def middle_odds(odds: Floats) -> Floats:
    """Log odds of each class around which its slope turns ``(C,)``."""
    return np.array([_middle(column) for column in odds.T])


def _middle(odds: Floats) -> float:
    """Where answers would be most uncertain, on average."""
    open_odds = odds[np.isfinite(odds)]
    if not open_odds.size:
        return 0.0
    probs = expit(open_odds)
    weight = probs * (1 - probs)
    return float(np.average(open_odds, weights=weight)) if weight.any() else 0.0
