"""From scores and incomplete labels to what is probably true of every pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hilltop.calibration import Belief
from hilltop.calibration.profile import LOG_KEEP
from hilltop.errors import ArgumentError
from hilltop.metrics.arrays import Floats
from hilltop.metrics.incomplete.consensus import Consensus, reach_consensus
from hilltop.metrics.incomplete.truth_posterior import (
    SLOPE_ERROR,
    TruthPosterior,
    expit,
    middle_odds,
)

KEPT = 0.5
"""Labels are said to be incomplete: about this share is kept, before scores are looked at."""
KEPT_SPREAD = 0.8
"""Standard deviation of its logarithm: an eighth and nearly all are within the usual."""
FURTHER_OFF = 3.0
"""How much further off keep rates may be than elsewhere: clear cases are written down first, and
scores then see fewer missing labels than there are; noisy scores see more."""
SAME_COUNT, SAME_COUNT_PAIRS = 0.25, 5.0
"""Pairs of labels of one image, as a share of what labels that have nothing to do with each other
would have, below which somebody stopped at a number, of how many labels nothing tells; and how many
pairs must be expected."""
STEEPER = 1.5
"""How much steeper slopes become at most where more is missing, in logarithms."""
LEAST_ERROR = 0.2
"""How far off numbers of missing labels may be at the least, in log odds, all classes together."""
LEAST_OWN_ERROR = 0.6
"""The same for each class by itself."""
LEAST_MISSING = 0.02
"""Share of a class's labels that is missing at the least."""
_SURE = 1e-6  # probabilities of 0 and 1 are taken as this far from it
_DECIDED = 0.02  # the same where most are 0 or 1: decisions, which say nothing of how sure they are
_SHIFTS: Floats = np.linspace(-6.0, 6.0, 33)
_SLOPES = 4  # slopes at which shifts are found; others lie between


def truth_from_labels(
    probs: Sequence[Any], targets: Any, *, observed: Any = None
) -> tuple[TruthPosterior, Consensus]:
    """Find out what is probably true of every pair, and what that is founded on.

    Args:
        probs: Probabilities by one model or several ``(N, C)``, which never saw these labels.
        targets: 1 for labelled, 0 for not labelled, NaN for a pair that takes no part.
        observed: True where a person confirmed the target.
    """
    labels = torch.as_tensor(np.asarray(targets, dtype=np.float32))
    confirmed = None if observed is None else torch.as_tensor(np.asarray(observed, dtype=bool))
    found = reach_consensus([_logits(one) for one in probs], labels, confirmed)
    logits, belief = found.logits, found.belief
    present = belief.present_probability(logits, labels.nan_to_num(), observed=confirmed)
    odds = np.array(torch.logit(present.double(), eps=_SURE).numpy())
    known = (targets == 1) | (confirmed.numpy() if confirmed is not None else False)
    odds[known] = np.where(np.asarray(targets)[known] == 1, np.inf, -np.inf)
    odds[np.isnan(np.asarray(targets))] = np.nan
    return _with_errors(odds, labels, belief), found


def _with_errors(odds: Floats, labels: Tensor, belief: Belief) -> TruthPosterior:
    """Let the numbers of missing labels be those of the belief, with its uncertainty."""
    counts = (labels == 1).sum(dim=0).numpy()
    prior = np.exp(-0.5 * ((LOG_KEEP - np.log(KEPT)) / KEPT_SPREAD) ** 2)
    if _stopped_at_a_number(labels):
        prior = np.ones_like(prior)
    models = [belief.posterior, belief.posterior.beside]
    drawn = [
        model.draw_missing(counts, down=FURTHER_OFF, up=FURTHER_OFF, prior=prior)
        for model in models
        if model is not None
    ]
    missing = np.maximum(np.concatenate(drawn)[:, :-1], LEAST_MISSING * counts + 0.1)
    slopes = _slopes(missing, counts, belief)
    middle = middle_odds(odds)
    shifts = np.stack(
        [_shifts(odds[:, at], middle[at], missing[:, at], slopes) for at in range(len(counts))],
        axis=1,
    )
    common = np.average(shifts, axis=1, weights=missing.mean(axis=0))
    own = (shifts - common[:, None]).std(axis=0)
    errors = np.cov(np.stack([slopes, common])) + np.diag([SLOPE_ERROR, LEAST_ERROR]) ** 2
    return TruthPosterior.of(
        odds,
        middle,
        slope=float(slopes.mean()),
        shift=shifts.mean(axis=0),
        common_error=errors,
        own_error=np.hypot(own, LEAST_OWN_ERROR),
    )


def _slopes(missing: Floats, counts: Floats, belief: Belief) -> Floats:
    """Logarithm of the slope that belongs to each draw: the more is missing, the steeper."""
    if belief.slopes is None:
        return np.zeros(len(missing))
    labelled = max(float(counts.sum()), 1.0)
    log_keep = -np.log1p(missing.sum(axis=1) / labelled)
    slopes: Floats = np.interp(-log_keep, -LOG_KEEP, np.log(belief.slopes))
    return np.clip(slopes, -STEEPER, STEEPER)


def _stopped_at_a_number(labels: Tensor) -> bool:
    """Whether far fewer labels share an image than labels that are lost one by one."""
    there, known = (labels == 1).double(), (~labels.isnan()).double()
    share = there.sum(dim=0) / known.sum(dim=0).clamp(min=1)
    expected = float(share.sum() ** 2 - share.square().sum()) * len(labels) / 2
    number = there.sum(dim=1)
    pairs = float((number * (number - 1)).sum()) / 2
    return expected >= SAME_COUNT_PAIRS and pairs < SAME_COUNT * expected


def _shifts(odds: Floats, middle: float, totals: Floats, slopes: Floats) -> Floats:
    """What brings the sum of a class's open probabilities to each total, at the slope beside it."""
    apart = (odds[np.isfinite(odds)] - middle).astype(np.float32)
    grid = np.linspace(slopes.min(), slopes.max(), _SLOPES if np.ptp(slopes) else 1)
    found = np.empty((len(grid), len(totals)))
    for at, slope in enumerate(np.exp(grid).astype(np.float32)):
        shifted = (middle + slope * apart).astype(np.float32) + _SHIFTS.astype(np.float32)[:, None]
        found[at] = np.interp(totals, expit(shifted).sum(axis=1, dtype=np.float64), _SHIFTS)
    if len(grid) == 1:
        alone: Floats = found[0]
        return alone
    place = (slopes - grid[0]) / (grid[1] - grid[0])
    below = np.minimum(place.astype(np.int64), len(grid) - 2)
    draws = np.arange(len(totals))
    low, high = found[below, draws], found[below + 1, draws]
    between: Floats = low + (place - below) * (high - low)
    return between


def _logits(probs: Any) -> Tensor:
    values = torch.as_tensor(np.asarray(probs, dtype=np.float32))
    outside = values[(values < 0) | (values > 1) | values.isnan()]
    if outside.numel():
        raise ArgumentError(
            "Scores must be probabilities, between 0 and 1, where labels are incomplete, but got"
            f" {float(outside[0])!r}. Put logits through a sigmoid."
        )
    decided = ((values <= _SURE) | (values >= 1 - _SURE)).float().mean()
    return torch.logit(values, eps=_DECIDED if decided > 0.5 else _SURE)
