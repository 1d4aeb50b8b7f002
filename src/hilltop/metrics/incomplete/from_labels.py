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
from hilltop.metrics.incomplete.truth_posterior import TruthPosterior, expit

KEPT = 0.5
"""Labels are said to be incomplete: about this share is kept, before scores are looked at."""
KEPT_SPREAD = 0.5
"""Standard deviation of its logarithm."""
FURTHER_DOWN = 3.0
"""How much further off keep rates may be towards more missing labels: clear cases are written down
first, and scores then see fewer missing labels than there are."""
LEAST_ERROR = 0.2
"""How far off numbers of missing labels may be at the least, in log odds, all classes together."""
LEAST_OWN_ERROR = 0.6
"""The same for each class by itself."""
LEAST_MISSING = 0.02
"""Share of a class's labels that is missing at the least."""
_SURE = 1e-6  # probabilities of 0 and 1 are taken as this far from it
_DECIDED = 0.02  # the same where most are 0 or 1: decisions, which say nothing of how sure they are
_SHIFTS: Floats = np.linspace(-6.0, 6.0, 49)


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
    missing = belief.posterior.draw_missing(counts, down=FURTHER_DOWN, prior=prior)
    missing = np.maximum(missing[:, :-1], LEAST_MISSING * counts + 0.1)
    shifts = np.stack([_shifts(*pair) for pair in zip(odds.T, missing.T, strict=True)], axis=1)
    weight = missing.mean(axis=0)
    common = np.average(shifts, axis=1, weights=weight)
    own = (shifts - common[:, None]).std(axis=0)
    return TruthPosterior.of(
        odds,
        shifts.mean(axis=0),
        common_error=float(np.hypot(common.std(), LEAST_ERROR)),
        own_error=np.hypot(own, LEAST_OWN_ERROR),
    )


def _shifts(odds: Floats, totals: Floats) -> Floats:
    """What brings the sum of a class's open probabilities to each total."""
    open_odds = odds[np.isfinite(odds)]
    sums = np.array([expit(open_odds + shift).sum() for shift in _SHIFTS])
    found: Floats = np.interp(totals, sums, _SHIFTS)
    return found


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
