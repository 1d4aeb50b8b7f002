"""The two observation models in the form in which calibration asks them: summed over pairs."""

from __future__ import annotations

from fractions import Fraction

from hilltop.losses.likelihood.by_count import KeptByCount
from hilltop.losses.likelihood.count_rule import CountRule
from hilltop.losses.likelihood.independent import KeptIndependently
from hilltop.losses.likelihood.keep_rate import Keep, KeepRate

Likelihood = KeptByCount | KeptIndependently


def summed_by_count(r: float | str | Fraction, *, restore_prob: float = 0.0) -> KeptByCount:
    """The likelihood of the rule that keeps a number of labels of an image, summed over pairs."""
    return KeptByCount(CountRule.of(r, restore_prob=restore_prob), reduction="sum", watch=False)


def summed_independently(keep: Keep) -> KeptIndependently:
    """The likelihood of keeping each label with one probability a class, summed over pairs."""
    return KeptIndependently(KeepRate(keep), reduction="sum", watch=False)
