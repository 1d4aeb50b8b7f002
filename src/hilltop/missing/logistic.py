r"""One penalised logistic regression, which every calibration in Hilltop is fitted by.

The log odds of the truth are linear in features, with coefficients that classes share and
deviations of each class, both with normal priors. What is observed may be the truth, or labels that
are recorded with a label frequency c (SCAR, the model of positive-unlabelled learning):

.. math:: \eta_{ij} = o_{ij} + \sum_k f_{kij} (\theta_k + \delta_{kj}), \qquad
    P(z_{ij} = 1) = \epsilon_j + (c - \epsilon_j) \, \sigma(\eta_{ij})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from hilltop.missing.priors import LOWEST_SLOPE

Floats = npt.NDArray[np.float64]

BINS = 256
MOST_GROUPS = 1 << 21
"""Groups of all classes together, beyond which a class has fewer than ``BINS``, at least 64."""
_MAX_LOGIT = 30.0
_MAX_STEPS, _MIN_GAIN, _SHORTEST_STEP, _LONGEST_STEP = 30, 1e-4, 1e-3, 1.0
_FLAT = 1e-9


def as_floats(values: Any) -> Floats:
    """Return a copy of an array, a tensor or lists as an array of doubles."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.array(values, dtype=np.float64)


class LabelBlock(NamedTuple):
    """Scores and labels of some images, see :meth:`Counts.of_labels`."""

    scores: npt.NDArray[Any]
    targets: npt.NDArray[Any]
    verified: npt.NDArray[np.bool_] | None = None
    restored: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Counts:
    """Entries of each class, grouped by their scores ``(groups, C)``: all that a likelihood needs.

    Grouping 12,000 images into 256 groups of each class changes no estimate by more than its noise,
    and makes a fit independent of the number of images.

    Attributes:
        scores: Mean score of the group.
        labelled: Entries with a label, observed with probability ``c p``.
        unlabelled: Entries without one, observed with probability ``1 - c p``.
        present: Weight of entries known to be present, probability ``p``.
        absent: Weight of entries known to be absent, probability ``1 - p``.
    """

    scores: Floats
    labelled: Floats
    unlabelled: Floats
    present: Floats
    absent: Floats

    @classmethod
    def of_labels(
        cls, scores: Any, targets: Any, verified: Any = None, restored: Any = None
    ) -> Counts:
        """Group labels.

        Args:
            scores: ``(N, C)``.
            targets: 1 labelled, 0 not labelled, NaN for entries that take no part.
            verified: True where a person verified that an entry is absent.
            restored: True for labels that were missing, and that a person added since.
        """
        groups = _Groups(scores, ~np.isnan(targets))
        nowhere = np.zeros(groups.known.shape, dtype=bool)
        seen = nowhere if verified is None else verified
        added = nowhere if restored is None else restored
        return cls(
            groups.scores,
            groups.count((targets == 1) & ~added),
            groups.count((targets == 0) & ~seen),
            groups.count((targets == 1) & added),
            groups.count((targets == 0) & seen),
        )

    @classmethod
    def of_blocks(cls, blocks: Callable[[], Iterable[LabelBlock]], classes: int) -> Counts:
        """Group labels a block of images at a time; memory does not grow with the images.

        Args:
            blocks: Gives the blocks from the first; it is called twice.
            classes: Number of classes.
        """
        low, high = np.full(classes, np.inf), np.full(classes, -np.inf)
        for block in blocks():
            known = np.isnan(block.targets)
            scores = np.where(known, np.inf, block.scores) if known.any() else block.scores
            low = np.minimum(low, scores.min(axis=0, initial=np.inf))
            scores = np.where(known, -np.inf, block.scores) if known.any() else block.scores
            high = np.maximum(high, scores.max(axis=0, initial=-np.inf))
        bins = max(64, min(BINS, MOST_GROUPS // classes))
        width = np.maximum(np.where(np.isfinite(low), high - low, 1.0), 1e-12)
        low, scale = np.where(np.isfinite(low), low, 0.0), bins / width
        size, columns = bins * classes, np.arange(classes, dtype=np.int32)
        total, sums = np.zeros(size), np.zeros(size)
        recorded, found, denied = np.zeros(size), np.zeros(size), np.zeros(size)
        for block in blocks():
            place = np.clip((block.scores - low) * scale, 0, bins - 1).astype(np.int32)
            at, known = place * np.int32(classes) + columns, ~np.isnan(block.targets)
            chosen = slice(None) if known.all() else known
            total += np.bincount(at[chosen].ravel(), minlength=size)
            sums += np.bincount(at[chosen].ravel(), block.scores[chosen].ravel(), size)
            labelled = block.targets == 1
            if block.restored is not None:
                found += np.bincount(at[labelled & block.restored], minlength=size)
                labelled = labelled & ~block.restored
            recorded += np.bincount(at[labelled], minlength=size)
            if block.verified is not None:
                denied += np.bincount(at[block.verified & (block.targets == 0)], minlength=size)
        parts = (sums / np.maximum(total, 1.0), recorded, total - recorded - found - denied)
        return cls(*(part.reshape(bins, classes) for part in (*parts, found, denied)))

    def as_recorded(self) -> Counts:
        """Return the same entries without what people verified: labelled or not."""
        none = np.zeros_like(self.labelled)
        return Counts(self.scores, self.labelled, self.total - self.labelled, none, none)

    @classmethod
    def of_probs(cls, scores: Any, probs: Floats) -> Counts:
        """Group probabilities of truth; NaN takes no part."""
        groups = _Groups(scores, ~np.isnan(probs))
        total, present = groups.count(groups.known), groups.sum(np.nan_to_num(probs))
        none = np.zeros_like(total)
        return cls(groups.scores, none, none, present, total - present)

    @property
    def total(self) -> Floats:
        """Number of entries in each group."""
        return self.labelled + self.unlabelled + self.present + self.absent

    def rescored(self, scores: Floats) -> Counts:
        """Return the same entries with other scores."""
        return Counts(scores, self.labelled, self.unlabelled, self.present, self.absent)

    def as_truth(self, probs: Floats) -> Counts:
        """Return the same entries with probabilities of truth instead of labels."""
        none, present = np.zeros_like(probs), self.total * probs
        return Counts(self.scores, none, none, present, self.total - present)

    def levels(self) -> Floats:
        """Score of each class at which its entries are least certain, on average ``(C,)``.

        Stretched about it, a rare class stays about as rare.
        """
        probs = expit(self.scores)
        weight = self.total * probs * (1 - probs)
        levels: Floats = (weight * self.scores).sum(axis=0)
        found: Floats = levels / np.maximum(weight.sum(axis=0), _FLAT)
        return found


class _Groups:
    """Equal steps between the lowest and the highest score of each class."""

    def __init__(self, scores: Any, known: npt.NDArray[np.bool_]) -> None:
        values = np.asarray(scores)
        self.known, self._shape = known, (BINS, values.shape[1])
        low = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
        high = np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)
        width = np.maximum(np.where(known.any(axis=0), high - low, 1.0), 1e-12)
        low = np.where(np.isfinite(low), low, 0.0)
        place = np.clip((np.nan_to_num(values) - low) * (BINS / width), 0, BINS - 1)
        self._at = place.astype(np.int32) * values.shape[1] + np.arange(values.shape[1])
        number = np.maximum(self.count(known), 1.0)
        self.scores: Floats = self.sum(np.where(known, values, 0.0).astype(np.float64)) / number

    def count(self, chosen: npt.NDArray[np.bool_]) -> Floats:
        return self._sums(self._at[chosen & self.known], None)

    def sum(self, values: Floats) -> Floats:
        return self._sums(self._at[self.known], values[self.known])

    def _sums(self, at: npt.NDArray[np.int32], values: Floats | None) -> Floats:
        size = self._shape[0] * self._shape[1]
        return np.bincount(at, values, size).reshape(self._shape).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Prior:
    """Normal priors of the coefficients.

    Attributes:
        mean: Of those that classes share ``(K,)``.
        precision: Of these, inverse variances ``(K,)`` or a matrix ``(K, K)``.
        class_precision: Inverse variances of the deviations of classes ``(K,)`` or ``(K, C)``;
            infinite for coefficients in which classes do not differ.
        slope: Whether the first coefficient is a slope, which stays positive.
    """

    mean: Floats
    precision: Floats
    class_precision: Floats
    slope: bool = True


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Most probable coefficients, and what is uncertain about them (Laplace's approximation).

    Attributes:
        shared: Coefficients that classes share ``(K,)``.
        by_class: Deviations of classes ``(K, C)``.
        loss: Negative log-likelihood of each class with the priors ``(C,)``.
        integrated_loss: The same, integrated over the deviations of the class (Laplace).
        information: Fisher information of each class about its coefficients ``(C, K, K)``.
        precision: Posterior precision of what classes share, their deviations integrated out.
    """

    shared: Floats
    by_class: Floats
    loss: Floats
    integrated_loss: Floats
    information: Floats
    precision: Floats

    @property
    def coefficients(self) -> Floats:
        """Coefficients of each class ``(K, C)``; the slope stays positive."""
        found = self.shared[:, None] + self.by_class
        found[0] = np.maximum(found[0], LOWEST_SLOPE)
        return found


def fit_logistic(
    features: Floats,
    offset: Floats | float,
    counts: Counts,
    prior: Prior,
    *,
    frequency: Floats | float = 1.0,
    floor: Floats | float = 0.0,
    start: LogisticFit | None = None,
) -> LogisticFit:
    """Fit by Newton's method with the Fisher information, which is an arrow matrix.

    Args:
        features: ``(K, groups, C)``.
        offset: Added to the log odds.
        counts: What was observed.
        prior: Priors of the coefficients.
        frequency: Label frequency c of labelled and unlabelled entries, or one of each class.
        floor: Probability of each class that an absent entry is labelled by mistake.
        start: A fit that should be near.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> scores = rng.normal(size=(5000, 2))
        >>> labels = rng.random((5000, 2)) < 0.5 * expit(2 * scores - 1)
        >>> counts = Counts.of_labels(scores, labels)
        >>> features = np.stack([counts.scores, np.ones_like(counts.scores)])
        >>> prior = Prior(np.array([1.0, 0.0]), np.full(2, 0.01), np.full(2, 100.0))
        >>> fit_logistic(features, 0.0, counts, prior, frequency=0.5).shared.round(1)
        array([ 1.8, -1.1])
    """
    observed = _Observed(features, offset, counts, prior, frequency, floor)
    theta = prior.mean.copy() if start is None else start.shared.copy()
    delta = np.zeros((len(features), features.shape[2])) if start is None else start.by_class.copy()
    log_odds = observed.log_odds(theta, delta)
    loss = observed.loss(log_odds, theta, delta)
    for _ in range(_MAX_STEPS):
        gradient, information = observed.derivatives(log_odds)
        step_theta, step_delta = _newton_step(prior, gradient, information, theta, delta)
        length = 1.0
        while length >= _SHORTEST_STEP:
            tried = theta - length * step_theta, delta - length * step_delta
            if prior.slope:
                tried[0][0] = max(tried[0][0], LOWEST_SLOPE)
            log_odds = observed.log_odds(*tried)
            found = observed.loss(log_odds, *tried)
            if found.sum() <= loss.sum():
                break
            length /= 2
        else:
            log_odds = observed.log_odds(theta, delta)
            break
        gain, (theta, delta), loss = float(loss.sum() - found.sum()), tried, found
        if gain < _MIN_GAIN:
            break
    _, information = observed.derivatives(log_odds)
    own = _class_precision(prior, features.shape[2])
    scaled = information / np.where(np.isinf(own), np.inf, own).T[:, :, None]
    determinant = np.linalg.slogdet(np.eye(len(theta)) + scaled)[1]
    precision = _matrix(prior.precision) + _reduced(information, own)
    integrated = loss + determinant / 2
    return LogisticFit(theta, delta, loss, integrated, information, precision)


class _Observed:
    """The likelihood of the counts as a function of the coefficients."""

    def __init__(
        self,
        features: Floats,
        offset: Floats | float,
        counts: Counts,
        prior: Prior,
        frequency: Floats | float,
        floor: Floats | float,
    ) -> None:
        self._features, self._offset, self._counts = features, offset, counts
        self._prior, self._frequency, self._floor = prior, frequency, np.asarray(floor)

    def log_odds(self, theta: Floats, delta: Floats) -> Floats:
        odds = np.einsum("kbc,kc->bc", self._features, theta[:, None] + delta) + self._offset
        found: Floats = np.clip(odds, -_MAX_LOGIT, _MAX_LOGIT)
        return found

    def loss(self, log_odds: Floats, theta: Floats, delta: Floats) -> Floats:
        """Negative log-likelihood by class, with the priors; that of ``theta`` is shared out."""
        counts = self._counts
        recorded, unrecorded, _ = self._recorded(log_odds)
        loss = -counts.present * log_expit(log_odds) - counts.absent * log_expit(-log_odds)
        loss -= counts.labelled * np.log(recorded) + counts.unlabelled * np.log(unrecorded)
        away, own = theta - self._prior.mean, _class_precision(self._prior, delta.shape[1])
        shared = away @ _matrix(self._prior.precision) @ away / 2
        prior = np.where(delta == 0, 0.0, np.where(np.isinf(own), 0.0, own) * delta**2)
        total: Floats = loss.sum(axis=0) + prior.sum(axis=0) / 2 + shared / delta.shape[1]
        return total

    def _recorded(self, log_odds: Floats) -> tuple[Floats, Floats, Floats]:
        """Probabilities of a label and of none, and the derivative of the first."""
        probs, gain = expit(log_odds), self._frequency - self._floor
        absent = expit(-log_odds)
        recorded = np.maximum(self._floor + gain * probs, 1e-300)
        unrecorded = np.maximum((1 - self._frequency) + gain * absent, 1e-300)
        return recorded, unrecorded, gain * probs * absent

    def derivatives(self, log_odds: Floats) -> tuple[Floats, Floats]:
        """Gradient ``(C, K)`` and Fisher information ``(C, K, K)`` of each class."""
        counts, probs = self._counts, expit(log_odds)
        recorded, unrecorded, slope = self._recorded(log_odds)
        known = counts.present + counts.absent
        residual = known * probs - counts.present
        residual += slope * (counts.unlabelled / unrecorded - counts.labelled / recorded)
        weight = known * probs * (1 - probs)
        weight += (counts.labelled + counts.unlabelled) * slope**2 / (recorded * unrecorded)
        gradient = np.einsum("kbc,bc->ck", self._features, residual)
        information = np.einsum(
            "kbc,bc,lbc->ckl", self._features, weight, self._features, optimize=True
        )
        return gradient, information


def _newton_step(
    prior: Prior, gradient: Floats, information: Floats, theta: Floats, delta: Floats
) -> tuple[Floats, Floats]:
    """Inverse of the posterior precision times the gradient, solved block by block."""
    own, precision = _class_precision(prior, delta.shape[1]), _matrix(prior.precision)
    inverse = _inverse_blocks(information, own)
    by_class = gradient + (np.where(np.isinf(own), 0.0, own) * delta).T
    shared = gradient.sum(axis=0) + precision @ (theta - prior.mean)
    shared -= np.einsum("ckl,clm,cm->k", information, inverse, by_class, optimize=True)
    reduced = precision + _reduced(information, own) + _FLAT * np.eye(len(theta))
    step = np.zeros_like(theta)
    # A slope that would turn negative stays where it is, so that the others still move.
    free = np.ones(len(theta), dtype=bool)
    free[0] = not (prior.slope and theta[0] <= LOWEST_SLOPE and shared[0] > 0)
    step[free] = np.linalg.solve(reduced[np.ix_(free, free)], shared[free])
    step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), _FLAT))
    moved = by_class - np.einsum("ckl,l->ck", information, step)
    return step, np.einsum("ckl,cl->kc", inverse, moved)


def _inverse_blocks(information: Floats, own: Floats) -> Floats:
    """Inverse of the precision of each class's deviations; 0 where classes do not differ."""
    free = ~np.isinf(own).all(axis=1)
    inverse = np.zeros_like(information)
    if free.any():
        block = information[:, free][:, :, free] + np.eye(int(free.sum())) * own[free].T[:, None]
        inverse[np.ix_(np.arange(len(inverse)), free, free)] = np.linalg.inv(block)
    return inverse


def _reduced(information: Floats, own: Floats) -> Floats:
    """Information about what classes share, with their deviations integrated out."""
    inverse = _inverse_blocks(information, own)
    lost = np.einsum("ckl,clm,cmn->kn", information, inverse, information, optimize=True)
    found: Floats = information.sum(axis=0) - lost
    return found


def _class_precision(prior: Prior, classes: int) -> Floats:
    own = prior.class_precision
    return np.broadcast_to(own[:, None], (len(own), classes)) if own.ndim == 1 else own


def _matrix(precision: Floats) -> Floats:
    return np.diag(precision) if precision.ndim == 1 else precision
