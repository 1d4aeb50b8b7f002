"""Keep rates of classes as far as the labels tell: drawn together, with what remains uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.calibration.arrays import Floats
from hilltop.calibration.profile import LOG_KEEP

BLUR = 0.15
"""How far off the curve of a class may be, in log keep: calibration is never exact."""
SPREADS = (0.1, 0.4, 0.8)
"""How far log keep may differ between classes, about."""
EXTRA_NATS = 3.0
"""What more spread than the least must gain."""
COMMON_ERROR = 0.15
"""How far off all curves may be together, in log keep."""
FURTHER_DOWN = 2.0
"""How much further off they may be towards more missing labels: clear cases are written down first,
and scores then see fewer missing labels than there are."""
NOTICEABLE = 0.1
"""Missing labels, as a share of those that are there, below which nothing is said to be missing."""
LEAST_NATS = 2.0
"""How much more probable labels must be with some missing than with none."""
NATS_A_LABEL = 0.003
"""The same for each label: a curve of a slightly wrong form looks as if labels were missing,
and the more labels there are, the surer that seems. Complete labels of nine sets have 0.002 at
most, those with some lost mostly 0.004 to 0.2."""
_DRAWS = 400
_STEP = float(LOG_KEEP[0] - LOG_KEEP[1])
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MissingCounts:
    """How many labels are missing: the middle and the ends of a 90% interval.

    Attributes:
        by_class: Of each class ``(3, C)``: lower end, middle, upper end.
        total: The same of all classes together ``(3,)``.
        any_missing: Whether the labels show that some are missing; otherwise the middle is 0.
    """

    by_class: Floats
    total: Floats
    any_missing: bool


@dataclass(frozen=True)
class KeepPosterior:
    r"""Posterior of the keep rate of each class: empirical Bayes on their likelihood curves.

    .. math:: \log c_j \sim N(\mu, \tau), \qquad P(\mu, \tau) \propto \prod_j \int P(c) L_j(c) \, dc

    Attributes:
        likelihood: Of each class at each of ``LOG_KEEP``, blurred ``(rates, C)``.
        weight: Posterior of spread and centre ``(spreads, rates)``.
        known: Whether it is known in another way that labels are missing.
        beside: What another model says, as probable as this one: numbers of missing labels are
            drawn from both.
    """

    likelihood: Floats
    weight: Floats
    known: bool = False
    beside: KeepPosterior | None = None

    @classmethod
    def of(cls, costs: Floats) -> KeepPosterior:
        """Draw classes together.

        Args:
            costs: Negative log likelihood of each class at each of ``LOG_KEEP`` ``(rates, C)``.
        """
        likelihood = _kernel(BLUR) @ np.exp(costs.min(axis=0) - costs)
        logs = np.array([np.log(_kernel(s) @ likelihood + 1e-300).sum(axis=1) for s in SPREADS])
        logs[1:] -= EXTRA_NATS
        weight = np.exp(logs - logs.max())
        return cls(likelihood, weight / weight.sum())

    @classmethod
    def around(cls, log_keep: Floats) -> KeepPosterior:
        """Return a posterior around keep rates that are known in another way."""
        found = cls.of(0.5 * ((LOG_KEEP[:, None] - log_keep) / (BLUR / 2)) ** 2)
        return replace(found, known=True)

    def mean(self) -> Floats:
        """Mean of log keep of each class."""
        mean: Floats = LOG_KEEP @ self.by_class()
        return mean

    def by_class(self, prior: Floats | None = None) -> Floats:
        """How probable each of ``LOG_KEEP`` is for each class ``(rates, C)``.

        Args:
            prior: How probable each of ``LOG_KEEP`` was before, if not all the same.
        """
        weight = self.weight if prior is None else self.weight * prior
        weight = weight / weight.sum()
        total = np.zeros_like(self.likelihood)
        for spread, centre in np.argwhere(weight > 1e-4).tolist():
            total += weight[spread, centre] * self._of_class(spread, centre)
        probs: Floats = total / total.sum(axis=0)
        return probs

    def missing(self, labelled: Counts, *, seed: int = 0) -> MissingCounts:
        """Say how many labels are missing.

        Args:
            labelled: Labels of each class.
            seed: Of the random draws.
        """
        low, middle, high = _quantiles(self._draw_both(labelled, seed=seed))
        if self.beside is None:
            _, _, high = _quantiles(self.draw_missing(labelled, down=FURTHER_DOWN, seed=seed))
        against_none = np.log(self.weight.max() / max(1e-300, self.weight[0, 0]))
        total = labelled.sum()
        least = max(LEAST_NATS, NATS_A_LABEL * total)
        clear = against_none > least and low[-1] > NOTICEABLE * total
        any_missing = self.known or bool(clear)
        if not any_missing:
            low, middle = np.zeros_like(low), np.zeros_like(middle)
        every = np.stack([low, middle, high])
        return MissingCounts(every[:, :-1], every[:, -1], any_missing)

    def _draw_both(self, labelled: Counts, *, seed: int) -> Counts:
        """Draws of this model and of the one beside it."""
        models = [self] if self.beside is None else [self, self.beside]
        return np.concatenate([model.draw_missing(labelled, seed=seed) for model in models])

    def _of_class(self, spread: int, centre: int) -> Floats:
        """Posterior of each class, given spread and centre of all ``(rates, C)``."""
        joint = _kernel(SPREADS[spread])[centre][:, None] * self.likelihood
        given: Floats = joint / joint.sum(axis=0)
        return given

    def draw_missing(
        self,
        labelled: Counts,
        *,
        down: float = 1.0,
        up: float = 1.0,
        prior: Floats | None = None,
        seed: int = 0,
    ) -> Counts:
        """Draw numbers of missing labels ``(draws, C + 1)``, the last column for all together.

        Args:
            labelled: Labels of each class.
            down: How much further off keep rates may be towards more missing labels.
            up: The same towards fewer.
            prior: How probable each of ``LOG_KEEP`` was before, if not all the same.
            seed: Of the random draws.
        """
        rng = np.random.default_rng(seed)
        error = LOG_KEEP[:, None] - LOG_KEEP  # truth less what scores show
        std = np.where(error < 0, COMMON_ERROR * down, COMMON_ERROR * up)
        errors = np.exp(-0.5 * (error / std) ** 2)
        errors /= errors.sum(axis=1, keepdims=True)
        joint = self.weight[:, None, :] * errors  # spread, true centre, centre that scores show
        if prior is not None:
            joint = joint * prior[:, None]
        drawn = rng.choice(joint.size, _DRAWS, p=joint.ravel() / joint.sum())
        spreads, truths, centres = np.unravel_index(drawn, joint.shape)
        log_keep = np.empty((_DRAWS, len(labelled)))
        for spread, centre in sorted(set(zip(spreads.tolist(), centres.tolist(), strict=True))):
            mine = np.flatnonzero((spreads == spread) & (centres == centre))
            above = self._of_class(spread, centre).cumsum(axis=0)
            uniform = rng.random((len(mine), len(labelled)))
            at = sum((uniform > row).astype(np.int64) for row in above[:-1])
            off = LOG_KEEP[truths[mine]] - LOG_KEEP[centre]
            off += rng.uniform(-_STEP / 2, _STEP / 2, len(mine))  # between points of the grid
            log_keep[mine] = np.minimum(0.0, LOG_KEEP[at] + off[:, None])
        lost = np.expm1(-log_keep)
        found = rng.poisson(rng.gamma(np.maximum(labelled, 0.5), size=lost.shape) * lost)
        return np.concatenate([found, found.sum(axis=1, keepdims=True)], axis=1)


def _kernel(std: float) -> Floats:
    """Normal distributions on the grid, a row for each centre."""
    kernel = np.exp(-0.5 * ((LOG_KEEP[:, None] - LOG_KEEP) / std) ** 2)
    normed: Floats = kernel / kernel.sum(axis=1, keepdims=True)
    return normed


def _quantiles(draws: Counts) -> Any:
    ends: Sequence[float] = (0.05, 0.5, 0.95)
    return np.quantile(draws, ends, axis=0)
