"""How many labels of each class are missing, and how sure that is.

From the model: the sum of the probabilities of its candidates. From a reviewed random sample: a
share with an exact interval, which needs no belief about how labels were lost.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilltop.audit.decisions.answers import Sample
from hilltop.calibration.intervals import Z_90, binomial_interval, weighted_interval
from hilltop.calibration.keep_rate import KeepEstimate
from hilltop.calibration.scaling import SHIFT_SPREAD
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write

Sums = npt.NDArray[np.float64]
Source = Literal["model", "sample"]
COLUMNS = ("class", "labelled", "missing", "low", "high", "source")
BEYOND = "not_looked_for"
"""A further column, of joined tables."""


@dataclass(frozen=True)
class Estimate:
    """How many labels of one class are missing.

    Attributes:
        class_name: The class.
        labelled: Labels that are there.
        missing: Labels that are not.
        low: Lower end of the 90% interval.
        high: Upper end of the 90% interval.
        source: Where the numbers come from.
        beyond: Further labels, in images of a joined table in which nobody looked for the class.
    """

    class_name: str
    labelled: int
    missing: float
    low: float
    high: float
    source: Source
    beyond: float = 0.0


class Tally:
    r"""Adds up, class by class, what estimate and interval need.

    With p the probability of a pair and q the one given the labels, a shift of a class's logits by
    d changes :math:`\sum q` by :math:`d\,V`, :math:`V = \sum q(1 - q)`. The labels hold d near 0
    with the curvature :math:`H = \sum p(1 - p) - V`; their noise is :math:`I = \sum (p - q)^2`.
    So the variance of the estimate is :math:`V + (V / (H + h))^2 I`: chance, and calibration (h:
    what the prior of the calibration adds).
    """

    def __init__(self, classes: int) -> None:
        """Start at 0."""
        self.missing: Sums = np.zeros(classes)
        self._spread: Sums = np.zeros(classes)
        self._curvature: Sums = np.zeros(classes)
        self._noise: Sums = np.zeros(classes)
        self.beyond: Sums = np.zeros(classes)
        self.pairs: npt.NDArray[np.int64] = np.zeros(classes, dtype=np.int64)

    def add(
        self,
        logits: Tensor,
        present: npt.NDArray[np.float32],
        unknown: npt.NDArray[np.bool_],
        not_looked_for: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Take in a block: calibrated logits, probabilities given the labels, open pairs.

        Pairs that nobody looked for are added up apart: they say nothing of how labels were lost.
        """
        probs = torch.sigmoid(logits)
        given = torch.from_numpy(present)
        if not_looked_for is not None:
            beyond = torch.from_numpy(not_looked_for)
            self.beyond += _sums(given * beyond)
            probs, given = probs.masked_fill(beyond, 0.0), given.masked_fill(beyond, 0.0)
            unknown = unknown & ~not_looked_for
        lost = given * torch.from_numpy(unknown)
        spread = _sums(lost * (1 - lost))
        self.missing += _sums(lost)
        self._spread += spread
        self._curvature += _sums(probs * (1 - probs)) - spread
        self._noise += _sums((probs - given).square())
        self.pairs += unknown.sum(axis=0)

    def variance(self) -> Sums:
        """Variance of the number of missing labels of each class, if the model is right."""
        held = np.maximum(self._curvature, 0.0) + SHIFT_SPREAD**-2
        calibration: Sums = (self._spread / held) ** 2 * self._noise
        return self._spread + calibration


def _sums(values: Tensor) -> Any:
    return values.sum(dim=0, dtype=torch.float64).numpy()


def model_estimates(
    classes: Sequence[str],
    labelled: Sequence[int] | npt.NDArray[np.int64],
    tally: Tally,
    *,
    others: Sums | None = None,
) -> list[Estimate]:
    """Return what the model says of each class.

    The interval holds chance and calibration. What it cannot hold is that labels were lost in
    another way; as far as other models were tried, the interval reaches to what they say.

    Args:
        classes: Names of the classes.
        labelled: Labels of each class.
        tally: Sums over all unlabelled pairs.
        others: Missing labels of each class by other observation models ``(models, classes)``.
    """
    reach = Z_90 * np.sqrt(tally.variance())
    low, high = tally.missing - reach, tally.missing + reach
    if others is not None:
        low = np.minimum(low, others.min(axis=0) - reach)
        high = np.maximum(high, others.max(axis=0) + reach)
    low, high = np.maximum(low, 0.0), np.minimum(high, tally.pairs)
    rows = zip(classes, labelled, tally.missing, low, high, tally.beyond, strict=True)
    return [
        Estimate(name, int(count), float(missing), float(least), float(most), "model", float(more))
        for name, count, missing, least, most, more in rows
    ]


def sample_estimate(class_name: str, labelled: int, pairs: int, sample: Sample) -> Estimate | None:
    """Return what a reviewed random sample says of a class; None if it is empty.

    Pairs that nobody could tell widen the interval: its lower end takes them for absent, its upper
    end for present.

    Args:
        class_name: The class.
        labelled: Labels that are there.
        pairs: Unlabelled pairs that the sample was drawn from.
        sample: Its answers.

    Example:
        >>> found = sample_estimate("cat", 100, 1000, Sample(present=3, absent=47, open=0))
        >>> print(f"{found.missing:.0f} ({found.low:.0f} to {found.high:.0f})")
        60 (17 to 148)
    """
    told = sample.present + sample.absent
    total = told + sample.open
    if not told:
        return None
    low, _ = binomial_interval(sample.present, total)
    _, high = binomial_interval(sample.present + sample.open, total)
    # What was seen is certain: so many at least, and so many at most.
    least, most = max(sample.present, low * pairs), min(pairs - sample.absent, high * pairs)
    missing = pairs * sample.present / told
    return Estimate(class_name, labelled, missing, least, most, "sample")


def total_of_samples(
    labelled: Sequence[int], pairs: Sequence[int], samples: Sequence[Sample]
) -> tuple[Estimate, KeepEstimate]:
    """Add up the samples of several classes: their missing labels and their keep rate.

    Args:
        labelled: Labels of each class.
        pairs: Unlabelled pairs that each sample was drawn from.
        samples: The answers; classes without any belong in another call.
    """
    told = [sample.present + sample.absent for sample in samples]
    weights = [size / count for size, count in zip(pairs, told, strict=True)]
    found = [sample.present for sample in samples]
    missing = sum(weight * count for weight, count in zip(weights, found, strict=True))
    low, high = weighted_interval(found, weights)
    if len(samples) == 1:
        share = binomial_interval(found[0], told[0])
        low, high = share[0] * pairs[0], share[1] * pairs[0]
    low, high = max(low, float(sum(found))), min(high, float(sum(pairs)))
    total = Estimate("", sum(labelled), missing, low, high, "sample")
    return total, keep_of(total)


def total_of_model(estimates: Sequence[Estimate], tally: Tally) -> Estimate:
    """Add up what the model says of all classes."""
    missing = sum(one.missing for one in estimates)
    # Errors of single classes even out, but where the observation model is wrong they do not.
    chance = Z_90 * math.sqrt(float(tally.variance().sum()))
    low = min(missing - chance, sum(one.low for one in estimates))
    high = max(missing + chance, sum(one.high for one in estimates))
    labelled = sum(one.labelled for one in estimates)
    beyond = sum(one.beyond for one in estimates)
    return Estimate("", labelled, missing, max(0.0, low), high, "model", beyond)


def keep_of(total: Estimate) -> KeepEstimate:
    """Return the share of the true labels that is there."""

    def share(missing: float) -> float:
        return total.labelled / max(1.0, total.labelled + missing)

    return KeepEstimate(share(total.missing), share(total.high), share(total.low))


def write_estimates(estimates: Sequence[Estimate], path: Path) -> None:
    """Write ``estimates.csv``, completely or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    joined = any(one.beyond for one in estimates)
    writer.writerow([*COLUMNS, BEYOND] if joined else COLUMNS)
    for one in estimates:
        numbers = (f"{number:.1f}" for number in (one.missing, one.low, one.high))
        more = [f"{one.beyond:.1f}"] if joined else []
        writer.writerow([one.class_name, one.labelled, *numbers, one.source, *more])
    atomic_write(path, text.getvalue())


def read_estimates(path: Path) -> list[Estimate]:
    """Read ``estimates.csv``.

    Raises:
        DataError: The file is missing or damaged.
    """
    if not path.is_file():
        raise data_error(path, "there is no such file. Run `hilltop audit` again.")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_parse(row) for row in csv.DictReader(file)]
    except (KeyError, ValueError, TypeError):
        raise data_error(path, "this file is damaged. Run `hilltop audit` again.") from None


def _parse(row: dict[str, str]) -> Estimate:
    if row["source"] not in ("model", "sample"):
        raise ValueError
    source: Source = "sample" if row["source"] == "sample" else "model"
    missing, low, high = (float(row[name]) for name in ("missing", "low", "high"))
    beyond = float(row.get(BEYOND, 0.0))
    return Estimate(row["class"], int(row["labelled"]), missing, low, high, source, beyond)
