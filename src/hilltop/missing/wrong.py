"""Labels that are wrong: which share of them in each class, and which ones probably.

Missing labels hide where scores are high and no label stands; wrong ones show where scores are
lowest and one does. There the share of entries with a label does not sink to 0 but to a floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit

from hilltop.missing import priors
from hilltop.missing.logistic import Counts, Floats, LogisticFit, Prior, as_floats, fit_logistic

_MAX_LOGIT = 30.0


@dataclass(frozen=True, eq=False)
class WrongLabelModel:
    """How labels became wrong, as far as scores tell.

    Attributes:
        rates: Share of the labels of each class that is wrong.
        any_wrong: Whether the labels show that some are; otherwise rates are what would go
            unnoticed.
        slope: From scores to log odds of the truth.
        shift: The same, for each class.
        suspicion: Log odds that a label is wrong where those of the truth are 0, for each class.
    """

    rates: Floats
    any_wrong: bool
    slope: float
    shift: Floats
    suspicion: Floats

    def prob_wrong(self, logits: Any) -> Floats:
        r"""Return how probable it is that each entry, if it is a label, is a wrong one.

        .. math:: P(\text{absent} \mid \text{labelled})
            = \frac{\epsilon (1 - p)}{c p + \epsilon (1 - p)}

        with log odds moved by the mean suspicion of the class.

        Args:
            logits: Out-of-fold scores ``(N, C)``.
        """
        odds = np.clip(as_floats(logits) * self.slope + self.shift, -_MAX_LOGIT, _MAX_LOGIT)
        probs: Floats = expit(self.suspicion - odds)
        return probs

    def of_columns(self, columns: Any) -> WrongLabelModel:
        """Return the model of entries of these classes."""
        parts = {name: getattr(self, name)[columns] for name in ("rates", "shift", "suspicion")}
        return replace(self, **parts)

    @classmethod
    def fit(
        cls,
        logits: Any,
        targets: Any,
        frequency: Floats,
        *,
        verified: Any = None,
        counts: Counts | None = None,
    ) -> WrongLabelModel:
        r"""Fit the probability of a label, with a floor for each class.

        .. math:: P(\text{labelled}) = c \, p + \epsilon \, (1 - p)

        The floor is one share of the labels of each class.

        Args:
            logits: Out-of-fold scores ``(N, C)``.
            targets: 1 labelled, 0 not labelled, NaN for entries that take no part.
            frequency: Label frequency of each class.
            verified: True where a person verified the target; such entries say nothing of mistakes.
            counts: Labels of more images by their scores, without verified ones, to fit to instead.

        Example:
            >>> rng = np.random.default_rng(0)
            >>> logits = 4 * rng.normal(size=(4000, 2)) - 2
            >>> true = rng.random((4000, 2)) < expit(logits)
            >>> wrong = ~true & (rng.random((4000, 2)) < 0.04)
            >>> found = WrongLabelModel.fit(logits, true | wrong, np.ones(2))
            >>> share = wrong.sum() / (true | wrong).sum()
            >>> found.any_wrong, bool((abs(found.rates - share) < 0.03).all())
            (True, True)
        """
        if counts is None:
            labels = as_floats(targets)
            if verified is not None:
                labels[as_floats(verified) == 1] = np.nan
            counts = Counts.of_labels(as_floats(logits), labels)
        frequency = np.clip(frequency, 1e-3, 1.0)
        share = (counts.labelled.sum(axis=0) + 0.5) / (counts.total.sum(axis=0) + 1.0)
        levels = counts.levels()
        away = counts.scores - levels
        features = np.stack([away, np.ones_like(away)])
        prior = Prior(
            np.array([1.0, 0.0]), np.array([0.25, 1e-6]), np.array([np.inf, priors.SHAPE_SD**-2])
        )

        def fitted(log_odds: float) -> LogisticFit:
            floor = expit(log_odds) * share
            return fit_logistic(features, levels, counts, prior, frequency=frequency, floor=floor)

        usual = float(logit(priors.USUAL_WRONG_RATE))

        def cost(log_odds: float) -> float:
            away_from_usual = (log_odds - usual) / priors.WRONG_RATE_SD
            return float(fitted(log_odds).loss.sum()) + away_from_usual**2 / 2

        best = minimize_scalar(
            cost, bounds=(usual - 6, 0.0), method="bounded", options={"xatol": 0.02}
        )
        none = fit_logistic(features, levels, counts, prior, frequency=frequency)
        fit = fitted(float(best.x))
        slope, shift = fit.coefficients
        suspicion = np.log(expit(best.x) * share) - np.log(frequency)
        shift = levels * (1 - slope) + shift
        suspicion = _levelled(suspicion, counts, float(slope[0]), shift)
        odds = suspicion - np.clip(counts.scores * slope + shift, -_MAX_LOGIT, _MAX_LOGIT)
        number = np.maximum(counts.labelled.sum(axis=0), 1.0)
        rates = (counts.labelled * expit(odds)).sum(axis=0) / number
        any_wrong = bool(none.loss.sum() - best.fun > priors.MIN_WRONG_GAIN)
        return cls(rates, any_wrong, float(slope[0]), shift, suspicion)


def _levelled(suspicion: Floats, counts: Counts, slope: float, shift: Floats) -> Floats:
    """Bring classes half way to the same mean log odds over their labels; the sum stays."""
    odds = suspicion - np.clip(counts.scores * slope + shift, -_MAX_LOGIT, _MAX_LOGIT)
    labelled = counts.labelled
    number = labelled.sum(axis=0)
    if not number.any():
        return suspicion
    mean = (odds * labelled).sum(axis=0) / np.maximum(number, 1.0)
    common = (mean * number).sum() / number.sum()
    level = np.where(number > 0, priors.WRONG_LEVELLING * (common - mean), 0.0)
    total = float((expit(odds) * labelled).sum())

    def surplus(more: float) -> float:
        return float((expit(odds + level + more) * labelled).sum()) - total

    found: Floats = suspicion + level + brentq(surplus, -_MAX_LOGIT, _MAX_LOGIT, xtol=1e-6)
    return found
