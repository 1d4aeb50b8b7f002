"""What claims about recall and precision follow from: sums over all pairs for many thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hilltop.missing import priors
from hilltop.missing.answers import Flags, Ints
from hilltop.missing.bets import Claims
from hilltop.missing.logistic import Floats

Metric = Literal["recall", "precision"]
Per = Literal["pair", "image"]
Scores = npt.NDArray[np.floating[Any]]
GRID = 140
"""Thresholds that are tried, half at equal steps of the expected recall, half at equal ratios of
the number of tags."""
EVERYTHING = -1.0
"""A threshold that every probability exceeds."""
_ENTRIES_AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class Population:
    """All (image, class) pairs ``(N, C)``; ``probs`` is 0 or 1 where the truth is known."""

    scores: Scores
    probs: npt.NDArray[np.float32]
    open: Flags
    there: Flags
    weights: npt.NDArray[np.float32]
    keys: npt.NDArray[np.float32]

    def of_class(self, column: int) -> Population:
        """The pairs of one class."""
        return Population(*(value[:, column : column + 1] for value in vars(self).values()))

    def first(self, number: int) -> Ints:
        """The first pairs of the random order."""
        keys = self.keys.ravel()
        if number >= len(keys):
            return np.argsort(keys, kind="stable")[:number]
        first = np.argpartition(keys, max(number - 1, 0))[:number]
        return first[np.argsort(keys[first], kind="stable")]

    def grid(self) -> Floats:
        """Thresholds at equal steps of the expected recall, the one that tags everything first."""
        scores, reached = _ascending(self.scores, self.probs)
        if not len(scores):
            return np.array([EVERYTHING])
        low = np.geomspace(1e-3, 0.02, 12)[:-1]
        steps = np.concatenate([low, np.linspace(0.02, 0.99, GRID // 2 - 12)])
        places = np.minimum(np.searchsorted(reached, steps * reached[-1]), len(scores) - 1)
        tags = (len(scores) * np.geomspace(1, 1 / 30, GRID // 2)).astype(np.int64)
        places = np.concatenate([places, np.minimum(len(scores) - tags, len(scores) - 1)])
        lowest = float(np.min(self.scores, where=self.there, initial=np.inf))
        everything = min(EVERYTHING, lowest - 1)
        return np.unique(np.concatenate([[everything], scores[places].astype(np.float64)]))

    def tags(self, grid: Floats) -> Floats:
        """How many scores exceed each threshold."""
        return _totals(self.there.ravel().astype(np.float64), count_below(self.scores, grid), grid)

    def blocks(self) -> Iterator[slice]:
        """Rows that are worked on together."""
        images, classes = self.scores.shape
        step = max(1, _ENTRIES_AT_ONCE // max(classes, GRID))
        return (slice(start, start + step) for start in range(0, images, step))


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over a population for each threshold of a grid ``(H,)``, by what is tagged and not.

    Attributes:
        images: Number of images.
        tags: Number of tags.
        present: Expected labels among tags, and among the others ``(2, H)``.
        noise: The same of the variances divided by weights.
        own: The same of the variances.
        weight: The same of the weights of what is open.
        extreme: Largest guess among open tags, and of absence among the others, by its weight.
        moments: Sums over images of products of expected labels among tags, among the others, and
            of tags ``(3, 3, H)``.
        means: Expected recall and precision of an image: sums over images, of squares, and of
            variances ``(2, 3, H)``; per image alone.
    """

    images: int
    tags: Floats
    present: Floats
    noise: Floats
    own: Floats
    weight: Floats
    extreme: Floats
    moments: Floats
    means: Floats

    @classmethod
    def of(cls, people: Population, grid: Floats, per: Per) -> Tally:
        """Sum up, in bounded memory."""
        images, classes = people.scores.shape
        size = len(grid)
        sums, moments, means = (
            np.zeros((5, size + 1)),
            np.zeros((3, 3, size)),
            np.zeros((2, 3, size)),
        )
        high, low = np.zeros(size + 1, np.float32), np.zeros(size + 1, np.float32)
        for rows in people.blocks():
            bins = count_below(people.scores[rows], grid)
            p = people.probs[rows].ravel()
            there, still = people.there[rows].ravel(), people.open[rows].ravel()
            variance = np.where(still, p * (1 - p), 0.0)
            w = people.weights[rows].ravel()
            for at, values in enumerate((there, p, variance / w, variance, w * still)):
                sums[at] += np.bincount(bins, values, minlength=size + 1)
            np.maximum.at(high, bins, np.where(still, p / w, 0))
            np.maximum.at(low, bins, np.where(still, (1 - p) / w, 0))
            if classes == 1 and per == "pair":  # an image is one pair
                above, every = _totals(p.astype(np.float64) ** 2, bins, grid), p.astype(np.float64)
                moments[0, 0] += above
                moments[1, 1] += float((every**2).sum()) - above
                moments[0, 2] += _totals(every, bins, grid)
                moments[2, 2] += _totals(there.astype(np.float64), bins, grid)
                continue
            count = len(people.scores[rows])
            place = np.repeat(np.arange(count) * (size + 1), classes) + bins
            parts = image_sums(p, place, count, size)
            number = image_sums(there, place, count, size)[0]
            for one, first in enumerate((*parts, number)):
                for other, second in enumerate((*parts, number)):
                    if other >= one:
                        moments[one, other] += np.einsum("ih,ih->h", first, second)
            if per == "image":
                for metric in range(2):
                    mean = image_means(metric, *parts, number)
                    for power, values in enumerate((mean, mean**2, mean * (1 - mean))):
                        means[metric, power] += values.sum(axis=0)
        below = np.cumsum(sums, axis=1)[:, :-1]
        split = np.stack([sums.sum(axis=1, keepdims=True) - below, below], axis=1)
        top = np.maximum.accumulate(high[::-1])[::-1][1:]
        bottom = np.maximum.accumulate(low)[:-1]
        extreme = np.stack([top, bottom]).astype(np.float64)
        tags, (present, noise, own, weight) = split[0, 0], split[1:]
        return cls(images, tags, present, noise, own, weight, extreme, moments, means)

    def expected(self, metric: Metric, per: Per) -> Floats:
        """The metric that is expected at each threshold."""
        if per == "image":
            means: Floats = self.means[int(metric == "precision"), 0] / self.images
            return means
        whole = self.present.sum(axis=0) if metric == "recall" else self.tags
        found: Floats = np.divide(
            self.present[0], whole, out=np.zeros_like(whole), where=whole > 1e-9
        )
        return found

    def claims(
        self, metric: Metric, levels: Floats, limits: Ints, misfit: float, least: float | None
    ) -> Claims:
        r"""Whether the metric reaches levels at thresholds.

        Recall of at least r is :math:`\sum y (1\{tag\} - r) \ge 0`, precision of at least q is
        :math:`\sum_{tags} (y - q) \ge 0`.

        Args:
            metric: Recall or precision of all pairs together.
            levels: Its values ``(H,)``.
            limits: Numbers of the thresholds ``(H,)``.
            misfit: How many times its own variance the model is off.
            least: Smallest probability of a single draw, where draws are made with replacement.
        """
        recall = metric == "recall"
        up, down = coefficients(metric, levels)
        over, under = self.present[:, limits]
        mean = up * over + down * under - (0 if recall else levels * self.tags[limits])
        weight = self.weight[0, limits] + (self.weight[1, limits] if recall else 0)
        scale = np.sqrt((up**2 * self.noise[0, limits] + down**2 * self.noise[1, limits]) * weight)
        top, bottom = self.extreme[:, limits]
        worst = np.maximum(up * top, -down * bottom)
        if least is not None:
            weight, worst = np.ones_like(mean), np.maximum(up, -down) / least
        factors = np.stack([up, down, np.zeros_like(up) if recall else -levels])
        second = np.zeros_like(mean)
        for one in range(3):
            for other in range(one, 3):
                double = 1 if one == other else 2
                product = self.moments[one, other, limits]
                second += double * factors[one] * factors[other] * product
        own = up**2 * self.own[0, limits] + down**2 * self.own[1, limits]
        between = np.sqrt(np.maximum(second - mean**2 / self.images, 0.0) + misfit * own)
        return Claims(mean, weight, worst, scale, between)

    def image_claims(self, metric: Metric, levels: Floats, limits: Ints) -> Claims:
        """Whether the mean over images reaches levels at thresholds."""
        mean, square, own = self.means[int(metric == "precision")][:, limits]
        images = float(self.images)
        spread = np.maximum(square - mean**2 / images, 0.0) + own
        every = np.ones_like(mean)
        return Claims(
            mean - levels * images, images * every, every, np.sqrt(own * images), np.sqrt(spread)
        )


def coefficients(metric: Metric, levels: Floats) -> tuple[Floats, Floats]:
    """Coefficients of the truth of tags, and of other pairs, in a claim."""
    if metric == "recall":
        return 1 - levels, -levels
    return np.ones_like(levels), np.zeros_like(levels)


def count_below(scores: Scores, grid: Floats) -> Ints:
    """How many thresholds each score exceeds."""
    found: Ints = np.searchsorted(grid, scores.ravel(), side="left")
    return found


def _totals(values: Floats, bins: Ints, grid: Floats) -> Floats:
    """Sums of what exceeds each threshold."""
    sums: Any = np.bincount(bins, values, minlength=len(grid) + 1)
    found: Floats = float(sums.sum()) - np.cumsum(sums)[:-1]
    return found


def image_sums(values: Any, place: Ints, count: int, size: int) -> tuple[Any, Any]:
    """Sums of each image above and below each threshold ``(count, size)``."""
    sums = np.bincount(place, values, minlength=count * (size + 1)).reshape(count, size + 1)
    below = np.cumsum(sums, axis=1)
    return below[:, -1:] - below[:, :-1], below[:, :-1]


def image_means(metric: int, hits: Floats, missed: Floats, tags: Floats) -> Floats:
    """Recall (0) or precision (1) of each image; 1 where there is nothing to find, or no tag."""
    whole = tags if metric else hits + missed
    found = np.ones_like(hits)
    np.divide(hits, whole, out=found, where=whole > 1e-9)
    return np.clip(found, 0.0, 1.0)


def _ascending(scores: Scores, probs: Any) -> tuple[Scores, Floats]:
    """Scores from the lowest, and expected labels up to each of them; of some of very many."""
    every = max(1, scores.size // _ENTRIES_AT_ONCE)
    some = scores.ravel()[::every]
    order = np.argsort(some, kind="stable")
    order = order[np.searchsorted(some, -np.inf, side="right", sorter=order) :]
    return some[order], np.cumsum(probs.ravel()[::every][order], dtype=np.float64)


def draw_weights(scores: Scores, probs: Any, metric: Metric, wanted: float) -> Any:
    """Weights to draw pairs with: small where an answer cannot decide about the promise."""
    found = np.sqrt(probs * (1 - probs) + np.float32(priors.PROMISE_SD**2))
    ranked, below = _ascending(scores, probs)
    if not len(ranked):
        return found
    above = below[-1] - below
    if metric == "recall":  # pairs that are tags at any threshold in question
        share = above / max(below[-1], 1e-9)
        at = int(np.searchsorted(-share, -(wanted - priors.PROMISE_DOUBT)))
        little = scores > (ranked[at] if at < len(ranked) else np.inf)
    else:  # pairs that are none
        precision = above / np.maximum(np.arange(len(above) - 1, -1, -1), 1)
        enough = np.flatnonzero(precision >= wanted - priors.PROMISE_DOUBT)
        little = scores <= (ranked[enough[0]] if len(enough) else -np.inf)
    found[little] *= np.float32(priors.PROMISE_LITTLE)
    return found
