"""Which observation model suits a set of labels, judged by how many labels images carry."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

from hilltop.errors import DataError
from hilltop.losses.count_rule import CountRule
from hilltop.losses.counted import KeptByCount
from hilltop.losses.kept import KeepRate
from hilltop.losses.observation import KeptIndependently

Likelihood = KeptByCount | KeptIndependently

MOSTLY_ONE = 0.75
"""Share of labelled images with exactly one label from which annotators wrote down about one."""
RARELY_THREE = 0.02
"""Share of labelled images with three labels or more up to which they did."""


class Choice(NamedTuple):
    """An observation model, and a sentence that says why."""

    loss: Likelihood
    sentence: str


def summed_by_count(r: float | str | Fraction) -> KeptByCount:
    """The likelihood of the rule that keeps a number of labels of an image, summed over pairs."""
    return KeptByCount(CountRule.of(r), reduction="sum", watch=False)


def summed_independently(keep: float) -> KeptIndependently:
    """The likelihood of keeping each label with one chance, summed over pairs."""
    return KeptIndependently(KeepRate(keep), reduction="sum", watch=False)


def choose_observation(labels_per_image: Tensor) -> Choice:
    """Choose how labels were probably lost.

    Args:
        labels_per_image: Entry s is the number of images with s labels.

    Raises:
        DataError: There is no label at all.

    Example:
        >>> choose_observation(torch.tensor([0, 90, 9, 1])).loss
        KeptByCount(r=4/5, reduction='sum')
        >>> choose_observation(torch.tensor([0, 40, 30, 30])).sentence.partition(":")[0]
        '40% of the labelled images carry one label'
    """
    one, several = carried(labels_per_image)
    carry = f"{one:.0%} of the labelled images carry one label"
    if about_one(one, several):
        return Choice(
            summed_by_count(0.8),
            f"{carry}: annotators wrote down about one label an image (kept_by_count, r = 0.8).",
        )
    return Choice(
        summed_independently(0.6),
        f"{carry}: each true label was kept with a chance of 60% (kept_independently).",
    )


def carried(labels_per_image: Tensor) -> tuple[float, float]:
    """Shares of the labelled images that carry exactly one label, and three or more.

    Args:
        labels_per_image: Entry s is the number of images with s labels.

    Raises:
        DataError: There is no label at all.
    """
    counts = labels_per_image[1:].to(torch.float64)
    total = float(counts.sum())
    if not total:
        raise DataError("There is no label at all; nothing can be said about missing ones.")
    return float(counts[:1].sum()) / total, float(counts[2:].sum()) / total


def about_one(one: float, several: float) -> bool:
    """Whether annotators wrote down about one label an image, by the shares of :func:`carried`."""
    return one >= MOSTLY_ONE and several <= RARELY_THREE
