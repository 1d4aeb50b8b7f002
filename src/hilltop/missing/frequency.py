r"""Label frequency: which share of the true labels of each class was recorded.

Out-of-fold scores tell. If every true label is recorded with probability c (SCAR), labels follow
:math:`c \, \sigma(\eta)`: where a class is certain, the share of entries with a label saturates at
c. The likelihood of the labels is profiled over c, with the scores calibrated anew at each.
Annotators who stop after a number of labels leave another trace, the number of labels of an image,
which the likelihood of the paper's count rule sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hilltop.losses.likelihood import count_nll
from hilltop.missing import priors
from hilltop.missing.logistic import Counts, Floats, LogisticFit, Prior, fit_logistic

LOG_FREQUENCIES: Floats = np.linspace(0.0, -3.0, 21)
"""Logarithms of the label frequencies that are tried: 1 ("none is missing"), 0.86, ... 0.05."""
STEP = float(LOG_FREQUENCIES[0] - LOG_FREQUENCIES[1])
COUNT_RATIOS = ("0.5", "0.8", "1")
"""Missing ratios r of the count rule that are tried."""
DRAWS = 400
_COUNT_ENTRIES = 1_000_000
_MIN_SAMPLE_ROWS = 200
_EM_STEPS, _EM_GAIN, _OVER_RELAXATION = 15, 0.5, 1.6
_MAX_LOGIT = 20.0


@dataclass(frozen=True, eq=False)
class Profile:
    """Calibrations of the truth at every label frequency.

    Attributes:
        losses: Negative log-likelihood of the labels of each class, its calibration integrated
            out ``(frequencies, C)``.
        pooled: The same of all classes together at their most probable calibrations. Scores
            without information leave it flat, but not ``losses``.
        coefficients: Slope, shift and bend of each class ``(frequencies, 3, C)``.
        levels: Score at which the bend begins, and about which slopes turn ``(C,)``.
    """

    losses: Floats
    pooled: Floats
    coefficients: Floats
    levels: Floats

    def at(self, log_frequency: Floats) -> Floats:
        """Coefficients at any log frequency of each class ``(..., C)`` -> ``(3, ..., C)``."""
        place = np.clip(-log_frequency / STEP, 0, len(LOG_FREQUENCIES) - 1 - 1e-9)
        below = place.astype(np.int64)
        share, columns = place - below, np.arange(log_frequency.shape[-1])
        found = [
            (1 - share) * table[below, columns] + share * table[below + 1, columns]
            for table in self.coefficients.transpose(1, 0, 2)
        ]
        return np.stack(found)


def fit_profile(counts: Counts) -> Profile:
    r"""Calibrate scores at every label frequency.

    .. math:: \eta = m_j + a_j (x - m_j) + b_j + h_j (x - m_j)_+

    A label that was missing and that a person found is observed with probability (1 - c) p: found
    labels rule out that none was missing.

    Args:
        counts: Labels by scores that are calibrated to them, so that slopes are about 1.
    """
    levels, found = counts.levels(), counts.present.sum(axis=0)
    features, prior = shape_features(counts.scores, levels), shape_prior()
    fit: LogisticFit | None = None
    losses, pooled, coefficients = [], [], []
    for log_frequency in LOG_FREQUENCIES:
        frequency = float(np.exp(log_frequency))
        fit = fit_logistic(features, levels, counts, prior, frequency=frequency, start=fit)
        lost = found * np.log(max(1 - frequency, priors.MIN_MISSING_RATE))
        losses.append(fit.integrated_loss - lost)
        pooled.append(float((fit.loss - lost).sum()))
        coefficients.append(fit.coefficients)
    return Profile(np.array(losses), np.array(pooled), np.array(coefficients), levels)


def shape_features(scores: Floats, levels: Floats) -> Floats:
    """Distance from the level of the class, a constant, and the distance above it."""
    away = scores - levels
    return np.stack([away, np.ones_like(away), np.maximum(away, 0.0)])


def shape_prior() -> Prior:
    """One slope, a free shift, a small bend; classes differ by ``SHAPE_SD`` in each."""
    precision = priors.SHAPE_SD**-2
    bend = priors.COMMON_BEND_SD**-2
    return Prior(np.array([1.0, 0.0, 0.0]), np.array([0.25, 1e-6, bend]), np.full(3, precision))


@dataclass(frozen=True, eq=False)
class CountRule:
    """What the paper's rule implies where the labels support it: of t labels some number is kept.

    Attributes:
        ratio: Missing ratio r; floor(t (1 - r)) + 1 labels are kept.
        missing: Expected number of missing labels of each class.
        gain: Log-likelihood per image by which the rule beats SCAR.
    """

    ratio: str
    missing: Floats
    gain: float


def fit_count_rule(
    scores: Any, targets: Any, verified: Any, profile: Profile, *, scale: float = 1.0
) -> CountRule | None:
    """Return the count rule that explains the labels best, or None where SCAR does as well.

    Images without any label take no part: the rule leaves none empty, so nobody annotated them.

    Args:
        scores: Calibrated to the labels ``(N, C)``.
        targets: 1 labelled, 0 not labelled, NaN for entries that take no part.
        verified: True where a person verified that an entry is absent; None for nowhere.
        profile: What SCAR says.
        scale: How many images the profile is of, for each of these; of a sample too small to tell,
            nothing is said.
    """
    labels_of_image = np.nansum(targets, axis=1)
    annotated = np.flatnonzero(labels_of_image > 0)
    if len(annotated) < (1 - priors.MAX_EMPTY_SHARE) * len(targets) or targets.shape[1] < 2:
        return None
    every = max(1, len(annotated) * targets.shape[1] // _COUNT_ENTRIES)
    rows = annotated[::every]
    if scale > 1 and len(rows) < _MIN_SAMPLE_ROWS:
        return None
    seen = None if verified is None else verified[rows]
    fits = [fit_ratio(ratio, scores[rows], targets[rows], seen) for ratio in COUNT_RATIOS]
    at = int(np.argmin([loss for loss, _ in fits]))
    best_scar = float(profile.losses.min(axis=0).sum()) / (scale * len(annotated))
    gain = best_scar - fits[at][0] / len(rows)
    missing = fits[at][1] * scale * len(annotated) / len(rows)
    labelled = scale * float(np.nansum(targets))
    implied = max(0.7, labelled / (labelled + missing.sum()))
    together = profile.losses.sum(axis=1)
    worse = np.interp(-np.log(implied), -LOG_FREQUENCIES, together) - together[0]
    worse *= coarsening(labelled)
    if gain <= priors.MIN_COUNT_GAIN or worse >= priors.MAX_CONTRADICTION:
        return None
    return CountRule(COUNT_RATIOS[at], missing, gain)


def fit_ratio(ratio: str, scores: Any, targets: Any, verified: Any) -> tuple[float, Floats]:
    """Negative log-likelihood of a count rule, and missing labels of each class, by EM."""
    values = np.asarray(scores, dtype=np.float64)
    levels = Counts.of_labels(values, targets).levels()
    precision = priors.SHAPE_SD**-2
    prior = Prior(np.array([1.0, 0.0]), np.array([0.25, 1e-6]), np.array([np.inf, precision]))
    theta, delta, losses = prior.mean.copy(), np.zeros((2, values.shape[1])), [np.inf]
    for _ in range(_EM_STEPS):
        odds = levels + (values - levels) * theta[0] + theta[1] + delta[1]
        loss, present = count_posterior(ratio, odds, targets, verified)
        losses.append(loss + precision * float((delta[1] ** 2).sum()) / 2)
        if losses[-2] - losses[-1] < _EM_GAIN:
            break
        counts = Counts.of_probs(values, np.where(np.isnan(targets), np.nan, present))
        features = shape_features(counts.scores, levels)[:2]
        found = fit_logistic(features, levels, counts, prior)
        theta = theta + _OVER_RELAXATION * (found.shared - theta)
        theta[0] = max(theta[0], priors.LOWEST_SLOPE)
        delta = delta + _OVER_RELAXATION * (found.by_class - delta)
    return losses[-1], np.nansum(np.where(targets == 0, present, 0.0), axis=0)


def count_posterior(ratio: str, log_odds: Any, targets: Any, verified: Any) -> tuple[float, Floats]:
    r"""Return the loss of a count rule, and the probability that each entry is present.

    .. math:: P(y_{ic} = 1 \mid \text{labels}) = p_{ic} - \partial L / \partial x_{ic}

    holds for every likelihood L of the labels (Fisher's identity), p = sigmoid(x).
    """
    loss = count_nll(ratio, restore_prob=priors.RESTORE_PROB)
    seen = None if verified is None else torch.as_tensor(np.asarray(verified))
    with torch.enable_grad():
        leaf = torch.as_tensor(np.clip(log_odds, -_MAX_LOGIT, _MAX_LOGIT)).float().requires_grad_()
        labels = torch.as_tensor(np.asarray(targets)).float()
        value = loss(leaf, labels, verified=seen)
        (gradient,) = torch.autograd.grad(value, leaf)
    # Rounding may put the difference of two near numbers outside by 1e-7.
    present = torch.sigmoid(leaf.detach()).sub_(gradient).clamp_(0.0, 1.0)
    return float(value.detach()), present.double().numpy()


def draw_frequencies(
    profile: Profile, labelled: Floats, rule: CountRule | None, rng: np.random.Generator
) -> Floats:
    r"""Draw log label frequencies of classes from their posterior.

    .. math:: \log c_j \sim N(\mu, \tau), \qquad
        P(\mu, \tau) \propto \prod_j \int P(c \mid \mu, \tau) \, L_j(c)^\zeta \, dc

    with the likelihood coarsened by :math:`\zeta = W / (W + n)` (``WORTH``).

    Args:
        profile: Likelihood of the labels of each class.
        labelled: Labels of each class.
        rule: The count rule that the labels support, if there is one.
        rng: Source of randomness.

    Returns:
        Draws ``(draws, C)``.
    """
    losses = coarsening(float(labelled.sum())) * profile.losses
    likelihood = np.exp(losses.min(axis=0) - losses)
    kernels = [_kernel(spread) for spread in priors.CLASS_SPREADS]
    logs = np.array([np.log(kernel @ likelihood + 1e-300).sum(axis=1) for kernel in kernels])
    weight = np.exp(logs - logs.max())
    drawn = rng.choice(weight.size, DRAWS, p=weight.ravel() / weight.sum())
    spreads, centres = np.unravel_index(drawn, weight.shape)
    found = np.empty((DRAWS, len(labelled)))
    for spread, centre in sorted(set(zip(spreads.tolist(), centres.tolist(), strict=True))):
        mine = np.flatnonzero((spreads == spread) & (centres == centre))
        joint = kernels[spread][centre][:, None] * likelihood
        above = (joint / joint.sum(axis=0)).cumsum(axis=0)
        uniform = rng.random((len(mine), len(labelled)))
        found[mine] = LOG_FREQUENCIES[sum((uniform > row).astype(np.int64) for row in above[:-1])]
    if rule is not None:
        share = int(priors.COUNT_SHARE * DRAWS)
        implied = np.log(np.maximum(labelled, 0.5) / np.maximum(labelled + rule.missing, 0.5))
        found[:share] = implied + rng.normal(0.0, priors.CLASS_SPREADS[0], (share, len(labelled)))
    error = rng.normal(0.0, priors.COMMON_ERROR, DRAWS)
    error = np.where(error < 0, priors.MORE_MISSING * error, error)
    error += rng.uniform(-STEP / 2, STEP / 2, DRAWS)  # between the points of the grid
    return np.minimum(found + error[:, None], 0.0)


def loglik_gain(profile: Profile, labels: float) -> float:
    """By how much log-likelihood "labels are missing" beats "none is missing", coarsened."""
    return coarsening(labels) * float(profile.pooled[0] - profile.pooled.min())


def coarsening(labels: float) -> float:
    """Power of the likelihood of this many labels, see ``WORTH``."""
    return priors.WORTH / (priors.WORTH + labels)


def _kernel(std: float) -> Floats:
    """Normal distributions on the grid, a row for each centre."""
    kernel = np.exp(-0.5 * ((LOG_FREQUENCIES[:, None] - LOG_FREQUENCIES) / std) ** 2)
    normed: Floats = kernel / kernel.sum(axis=1, keepdims=True)
    return normed
