"""Likelihoods of the labels that are there, if labels were lost by a known process."""

from __future__ import annotations

from fractions import Fraction

from hilltop.losses.likelihood.count import CountLikelihood
from hilltop.losses.likelihood.count_rule import CountRule
from hilltop.losses.likelihood.scar import Frequency, LabelFrequency, ScarLikelihood

Likelihood = CountLikelihood | ScarLikelihood


def scar_nll(label_frequency: Frequency) -> ScarLikelihood:
    """Return the SCAR likelihood as a negative log-likelihood, summed over entries."""
    frequency = LabelFrequency(label_frequency)
    return ScarLikelihood(frequency, reduction="sum", watch=False, safe_start=False)


def count_nll(r: float | str | Fraction, *, restore_prob: float = 0.0) -> CountLikelihood:
    """Return the likelihood of the count rule as a negative log-likelihood, summed over entries."""
    rule = CountRule.of(r, restore_prob=restore_prob)
    return CountLikelihood(rule, reduction="sum", watch=False, safe_start=False)
