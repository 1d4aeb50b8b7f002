"""Which observation model suits a set of labels, judged by how many labels images carry."""

from __future__ import annotations

from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from hilltop.errors import DataError
from hilltop.losses.base import Loss
from hilltop.losses.likelihood.by_count import KeptByCount
from hilltop.losses.likelihood.count_rule import CountRule
from hilltop.losses.likelihood.independent import KeptIndependently
from hilltop.losses.likelihood.keep_rate import Keep, KeepRate

Likelihood = KeptByCount | KeptIndependently

MOSTLY_ONE = 0.75
"""Share of labelled images with exactly one label from which annotators wrote down about one."""
RARELY_THREE = 0.02
"""Share of labelled images with three labels or more up to which they did."""

RESTORE_PROB = 0.03
"""Probability that a lost label was put back, where nothing is known of a review.

On labels that nobody has reviewed it changes next to nothing; without it, each label that a review
puts back would make a model worse."""

ABOUT_ONE = "annotators wrote down about one label an image (kept_by_count, r = 0.8)"
"""What is said of labels of which they did."""

AnyLoss = TypeVar("AnyLoss", bound=Loss)


class Choice(NamedTuple, Generic[AnyLoss]):
    """A loss, and a sentence that says why."""

    loss: AnyLoss
    sentence: str


class LabelCounts(NamedTuple):
    """How many labels images carry: all that the choice of a loss by counts goes by.

    Attributes:
        one: Share of the labelled images with exactly one label.
        several: Share of them with three labels or more.
    """

    one: float
    several: float

    @classmethod
    def of(cls, labels_per_image: Tensor) -> LabelCounts:
        """Count.

        Args:
            labels_per_image: Entry s is the number of images with s labels.

        Raises:
            DataError: There is no label at all.
        """
        counts = labels_per_image[1:].to(torch.float64)
        total = float(counts.sum())
        if not total:
            raise DataError("There is no label at all; nothing can be said about missing ones.")
        return cls(float(counts[:1].sum()) / total, float(counts[2:].sum()) / total)

    @property
    def mostly_single(self) -> bool:
        """Whether annotators wrote down about one label an image."""
        return self.one >= MOSTLY_ONE and self.several <= RARELY_THREE

    def sentence(self, meaning: str) -> str:
        """Say what they carry, and what that is taken to mean."""
        return f"{self.one:.0%} of the labelled images carry one label: {meaning}."


def summed_by_count(r: float | str | Fraction, *, restore_prob: float = 0.0) -> KeptByCount:
    """The likelihood of the rule that keeps a number of labels of an image, summed over pairs."""
    return KeptByCount(CountRule.of(r, restore_prob=restore_prob), reduction="sum", watch=False)


def summed_independently(keep: Keep) -> KeptIndependently:
    """The likelihood of keeping each label with one probability a class, summed over pairs."""
    return KeptIndependently(KeepRate(keep), reduction="sum", watch=False)


def choose_observation(labels_per_image: Tensor) -> Choice[Likelihood]:
    """Choose how labels were probably lost.

    Args:
        labels_per_image: Entry s is the number of images with s labels.

    Raises:
        DataError: There is no label at all.

    Example:
        >>> choose_observation(torch.tensor([0, 90, 9, 1])).loss
        KeptByCount(r=4/5, restore_prob=0.03, reduction='sum')
        >>> choose_observation(torch.tensor([0, 40, 30, 30])).sentence.partition(":")[0]
        '40% of the labelled images carry one label'
    """
    carried = LabelCounts.of(labels_per_image)
    if carried.mostly_single:
        return Choice(summed_by_count(0.8, restore_prob=RESTORE_PROB), carried.sentence(ABOUT_ONE))
    meaning = "each true label was kept with a probability of 60% (kept_independently)"
    return Choice(summed_independently(0.6), carried.sentence(meaning))
