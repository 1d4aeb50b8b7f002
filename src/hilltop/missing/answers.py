"""Answers of people about single (image, class) pairs, and how the pairs to ask about are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_same_shape
from hilltop.errors import ArgumentError
from hilltop.missing.logistic import Floats

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


_ENTRIES = ("rows", "columns", "present", "sampled_with", "batch")


@dataclass(frozen=True, eq=False)
class SampledAnswers:
    """What people said of pairs; all arrays have one entry per answer.

    Attributes:
        rows: Image numbers.
        columns: Class numbers.
        present: Whether the class is there.
        sampled_with: The probability with which the pair was drawn, among those that were open
            then; NaN for a pair that was not drawn at random: it is known, and stands for no other.
        batch: Number of the sample that it was drawn in, earlier ones first.
        asked: How many pairs were asked about in each batch, of which some may have no answer;
            as many as there are answers without it.
    """

    rows: Ints
    columns: Ints
    present: Flags
    sampled_with: Floats
    batch: Ints
    asked: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Check that entries fit together."""
        for name in ("columns", "present", "sampled_with", "batch"):
            check_same_shape(name, getattr(self, name).shape, "rows", self.rows.shape)
        outside = self.sampled_with[(self.sampled_with <= 0) | (self.sampled_with > 1)]
        if outside.size:
            raise ArgumentError(
                "sampled_with must be greater than 0 and at most 1, or NaN,"
                f" but got {float(outside[0])!r}."
            )

    @classmethod
    def none(cls) -> SampledAnswers:
        """Return no answers."""
        whole, empty = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(whole, whole, np.zeros(0, dtype=bool), empty, whole)

    def __len__(self) -> int:
        """Number of answers."""
        return len(self.rows)

    def __add__(self, later: SampledAnswers) -> SampledAnswers:
        """Return these answers and later ones."""
        asked, more = dict(self.batches()), dict(later.batches())
        numbers = range(max([*asked, *more], default=-1) + 1)
        both = ((getattr(self, name), getattr(later, name)) for name in _ENTRIES)
        parts = {name: np.concatenate(pair) for name, pair in zip(_ENTRIES, both, strict=True)}
        return SampledAnswers(
            **parts, asked=tuple(asked.get(one, 0) + more.get(one, 0) for one in numbers)
        )

    def select(self, chosen: npt.NDArray[np.int64] | Flags) -> SampledAnswers:
        """Return some of the answers; the numbers of pairs asked about stay."""
        parts = {name: getattr(self, name)[chosen] for name in _ENTRIES}
        return SampledAnswers(**parts, asked=self.asked)

    def batches(self) -> list[tuple[int, int]]:
        """Return the number of each batch, and how many pairs were asked about in it."""
        told = {int(one): int((self.batch == one).sum()) for one in np.unique(self.batch)}
        if self.asked is not None:
            told |= {one: max(told.get(one, 0), asked) for one, asked in enumerate(self.asked)}
        return sorted(told.items())

    def correction_weights(self) -> Floats:
        r"""How often each residual counts besides its own pair.

        .. math:: T = \sum_i p_i + \sum_{i \in S} \frac{y_i - p_i}{\pi_i}

        is the difference estimator of one sample. Every sample estimates what was open when it was
        drawn; their estimates are averaged by size. Answers replace p, so that one is subtracted
        for every sample that could have contained the pair.
        """
        weights, shares = np.zeros(len(self)), self._shares()
        for batch, (mine, share) in shares.items():
            weights[mine] += share / self.sampled_with[mine]
            weights[~np.isnan(self.sampled_with) & (self.batch >= batch)] -= share
        return weights

    def variance_weights(self) -> Floats:
        """How much the square of each residual adds to the variance of the estimator."""
        weights = np.zeros(len(self))
        for mine, share in self._shares().values():
            prob = self.sampled_with[mine]
            weights[mine] = share**2 * (1 - prob) / prob**2
        return weights

    def _shares(self) -> dict[int, tuple[Flags, float]]:
        """Each random sample by its number: its answers, and their share of all such answers."""
        at_random = ~np.isnan(self.sampled_with)
        total = max(1, int(at_random.sum()))
        samples = {
            int(batch): at_random & (self.batch == batch)
            for batch in np.unique(self.batch[at_random])
        }
        return {batch: (mine, float(mine.sum() / total)) for batch, mine in samples.items()}


@dataclass(frozen=True, eq=False)
class PlannedPairs:
    """Pairs to ask about; all arrays have one entry per pair.

    Attributes:
        rows: Image numbers.
        columns: Class numbers.
        probs: Probability that the class is there.
        sampled_with: Probability with which the pair was drawn.
    """

    rows: Ints
    columns: Ints
    probs: Floats
    sampled_with: Floats

    def answered(self, present: npt.ArrayLike, *, batch: int = 0) -> SampledAnswers:
        """Return answers to these pairs.

        Args:
            present: 1 where the class is there, 0 where not; NaN where nobody could tell.
            batch: Number of the sample, earlier ones first.
        """
        said = np.asarray(present, dtype=np.float64)
        told = ~np.isnan(said)
        return SampledAnswers(
            self.rows[told],
            self.columns[told],
            said[told] == 1,
            self.sampled_with[told],
            np.full(int(told.sum()), batch),
            (*[0] * batch, len(said)),
        )


def inclusion_probabilities(sizes: Floats, number: int) -> Floats:
    """Return probabilities in proportion to sizes, none above 1, that add up to a number."""
    share = sizes / sizes.sum() if sizes.size else sizes
    number = min(number, len(sizes))
    inclusion = number * share
    while (inclusion > 1).any():
        sure = inclusion >= 1
        rest = share * ~sure
        if not rest.any():
            break
        inclusion = np.where(sure, 1.0, (number - sure.sum()) * rest / rest.sum())
    return np.minimum(inclusion, 1.0)


def systematic_sample(inclusion: Floats, rng: np.random.Generator) -> Ints:
    """Draw places, each with its own probability, in random order; their number is fixed."""
    order = rng.permutation(len(inclusion))
    reached = np.floor(np.cumsum(inclusion[order]) + rng.random())
    hit = np.diff(reached, prepend=0.0) >= 1
    return rng.permutation(order[hit]).astype(np.int64)


def weighted_total(
    expected: float, probs: Floats, present: Floats, sampled_with: Floats
) -> tuple[float, float]:
    r"""Return the difference estimator of a total from one weighted sample, and its standard error.

    .. math:: \sum_{i} p_i + \sum_{i \in S} \frac{y_i - p_i}{\pi_i}

    It is unbiased whatever the probabilities p are worth; the better they are, the smaller is the
    error.

    Args:
        expected: Sum of the probabilities of all pairs that were drawn from.
        probs: Probabilities of the pairs that were drawn.
        present: 1 where the label is missing, 0 where the class is absent.
        sampled_with: Probability with which each was drawn.

    Example:
        >>> weighted_total(10.0, np.array([0.5]), np.array([1.0]), np.array([0.25]))[0]
        12.0
    """
    weighted = (present - probs) / sampled_with
    error = float(np.sqrt(((1 - sampled_with) * weighted**2).sum()))
    return expected + float(weighted.sum()), error
