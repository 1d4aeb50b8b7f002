"""What claims about recall and precision follow from: sums over all pairs for many thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtri

from hilltop.missing import priors
from hilltop.missing.answers import Flags, Ints
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
_BINS, _STEPS, _HUGE = 200, 25, 1e300


@dataclass(frozen=True, eq=False)
class Groups:
    """Images in random groups, each of which a bet is about.

    Attributes:
        of_image: Group of each image ``(N,)``.
        images: Number of images of each group ``(G,)``, as the others are.
        open: Number of open pairs.
        weight: Sum of their weights.
    """

    of_image: Ints
    images: Ints
    open: Ints
    weight: Floats

    @classmethod
    def of(cls, of_image: Ints, weights: Any, still: Flags) -> Groups:
        """Sum up."""
        images = np.bincount(of_image)
        count = np.bincount(of_image, still.sum(axis=1)).astype(np.int64)
        weight: Any = np.bincount(
            of_image, np.where(still, weights, 0).sum(axis=1, dtype=np.float64)
        )
        return cls(of_image, images, count, weight)


@dataclass(frozen=True, eq=False)
class Population:
    """All (image, class) pairs ``(N, C)``; ``probs`` is 0 or 1 where the truth is known."""

    scores: Scores
    probs: npt.NDArray[np.float32]
    open: Flags
    there: Flags
    weights: npt.NDArray[np.float32]
    keys: npt.NDArray[np.floating[Any]]
    groups: Groups

    def of_class(self, column: int) -> Population:
        """The pairs of one class."""
        values = {
            name: value[:, column : column + 1]
            for name, value in vars(self).items()
            if name != "groups"
        }
        return replace(self, **values)

    def first(self, number: int) -> Ints:
        """The first pairs of the random order."""
        keys = self.keys.ravel()
        if number >= len(keys):
            return np.argsort(keys, kind="stable")[:number]
        first = np.argpartition(keys, max(number - 1, 0))[:number]
        return first[np.argsort(keys[first], kind="stable")]

    def grid(self) -> tuple[Floats, Floats]:
        """Thresholds, the one that tags everything first, and how many tags are probably true.

        They follow from scores and a smooth curve through the labels, so that no threshold is
        chosen because of the labels of single images.
        """
        scores, present = ascending(self.scores, self.probs)
        if not len(scores):
            return np.array([EVERYTHING]), np.zeros(1)
        reached = np.cumsum(_smooth(present))
        low = np.geomspace(1e-3, 0.02, 12)[:-1]
        steps = np.concatenate([low, np.linspace(0.02, 0.99, GRID // 2 - 12)])
        places = np.searchsorted(reached, steps * reached[-1])
        tags = len(scores) * np.geomspace(1, 1 / 30, GRID // 2)
        places = np.concatenate([places, len(scores) - tags.astype(np.int64)])
        lowest = float(np.min(self.scores, where=self.there, initial=np.inf))
        everything = min(EVERYTHING, lowest - 1)
        at = scores[np.minimum(places, len(scores) - 1)].astype(np.float64)
        grid = np.unique(np.concatenate([[everything], at]))
        below = np.searchsorted(scores, grid, side="right")
        true = reached[-1] - np.concatenate([[0.0], reached])[below]
        return grid, true / np.maximum(len(scores) - below, 1)

    def end(self, number: int) -> float:
        """The key that ends the first pairs; huge where they are all."""
        keys = self.keys.ravel()
        return (
            min(float(np.partition(keys, number)[number]), _HUGE) if number < len(keys) else _HUGE
        )

    def blocks(self) -> Iterator[slice]:
        """Rows that are worked on together."""
        images, classes = self.scores.shape
        step = max(1, _ENTRIES_AT_ONCE // max(classes, GRID))
        return (slice(start, start + step) for start in range(0, images, step))


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over groups for each threshold of a grid ``(G, H)``, by what is tagged and not.

    Attributes:
        tags: Number of tags.
        present: Expected labels among tags, and among the others ``(2, G, H)``.
        noise: The same of the variances divided by weights.
        weight: The same of the weights of what is open.
        extreme: Largest guess among open tags, and of absence among the others, by its weight.
        means: Expected recall and precision of an image, and the variances: sums over images
            ``(2, 2, G, H)``; per image alone.
    """

    tags: Floats
    present: Floats
    noise: Floats
    weight: Floats
    extreme: Floats
    means: Floats

    @classmethod
    def of(cls, people: Population, grid: Floats, per: Per) -> Tally:
        """Sum up, in bounded memory."""
        size, many, classes = len(grid), len(people.groups.images), people.scores.shape[1]
        cells = many * (size + 1)
        sums, means = np.zeros((4, cells)), np.zeros((2, 2, many, size))
        high, low = np.zeros((2, cells), np.float32)
        for rows in people.blocks():
            bins = count_below(people.scores[rows], grid)
            group = people.groups.of_image[rows]
            place = np.repeat(group * (size + 1), classes) + bins
            p = people.probs[rows].ravel()
            there, still = people.there[rows].ravel(), people.open[rows].ravel()
            w = people.weights[rows].ravel()
            noise = np.where(still, p * (1 - p), 0.0) / w
            for at, values in enumerate((there, p, noise, w * still)):
                sums[at] += np.bincount(place, values, minlength=cells)
            np.maximum.at(high, place, np.where(still, p / w, 0))
            np.maximum.at(low, place, np.where(still, (1 - p) / w, 0))
            if per == "image":
                count = len(group)
                own = np.repeat(np.arange(count) * (size + 1), classes) + bins
                parts, number = image_sums(p, own, count, size), image_sums(there, own, count, size)
                for metric in range(2):
                    mean = image_means(metric, *parts, number[0])
                    np.add.at(means[metric, 0], group, mean)
                    np.add.at(means[metric, 1], group, mean * (1 - mean))
        split = np.stack(above_and_below(sums.reshape(4, many, size + 1)), axis=1)
        high, low = high.reshape(many, size + 1), low.reshape(many, size + 1)
        top = np.maximum.accumulate(high[:, ::-1], axis=1)[:, ::-1][:, 1:]
        bottom = np.maximum.accumulate(low, axis=1)[:, :-1]
        extreme = np.stack([top, bottom]).astype(np.float64)
        return cls(split[0, 0], split[1], split[2], split[3], extreme, means)

    def guess(self, metric: Metric, levels: Floats, limits: Ints) -> Floats:
        r"""By how much each group exceeds levels at thresholds, if guesses are right ``(G, H)``.

        Recall of at least r is :math:`\sum y (1\{tag\} - r) \ge 0`, precision of at least q is
        :math:`\sum_{tags} (y - q) \ge 0`.
        """
        up, down = coefficients(metric, levels)
        found: Floats = up * self.present[0][:, limits] + down * self.present[1][:, limits]
        if metric == "precision":
            found = found - levels * self.tags[:, limits]
        return found

    def worst(self, metric: Metric, levels: Floats, limits: Ints) -> Floats:
        """By how much an answer may be below its guess, divided by its weight ``(G, H)``."""
        up, down = coefficients(metric, levels)
        top, bottom = self.extreme[:, :, limits]
        found: Floats = np.maximum(up * top, -down * bottom)
        return found

    def spread(self, metric: Metric, levels: Floats, limits: Ints) -> Floats:
        """Variances that answers remove, divided by weights, if guesses are right ``(H,)``."""
        up, down = coefficients(metric, levels)
        above, below = self.noise[:, :, limits].sum(axis=1)
        found: Floats = up**2 * above + down**2 * below
        return found


def corrections(gain: Floats, drawn: Floats, group: Ints, groups: Groups) -> Floats:
    """What answers add to the guess of each group that was asked about ``(G, H)``.

    Draws stand in their order. Each of them makes an unbiased estimate, together with those before
    it in its group; estimates count by the inverse of their variances were all pairs alike.
    """
    found = np.zeros((len(groups.open), gain.shape[1]))
    turn = np.argsort(group, kind="stable")
    gain, drawn, group = gain[turn], drawn[turn], group[turn]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    if not len(first):
        return found
    length = np.diff(first, append=len(group))
    start = np.repeat(first, length)
    seen, passed = np.cumsum(gain, axis=0) - gain, np.cumsum(drawn) - drawn
    left = np.maximum(groups.weight[group] - (passed - passed[start]), drawn)
    steps = seen - seen[start] + gain * (left / drawn)[:, None]
    number = groups.open[group] - (np.arange(len(group)) - start)
    trust = 1 / np.maximum(number * (number - 1), 1e-6)
    trust /= np.repeat(np.add.reduceat(trust, first), length)
    found[group[first]] = np.add.reduceat(steps * trust[:, None], first)
    return found


def keys_in_turn(keys: Any, groups: Groups, rng: np.random.Generator) -> Floats:
    """Keys by which every group is asked about in proportion to its weight, as evenly as may be.

    The j-th pair of a group of the weight W, in the order of its keys, has the key (j - U) / W.
    """
    rows, columns = np.nonzero(np.isfinite(keys))
    group, found = groups.of_image[rows], np.full(keys.shape, np.inf)
    clock = keys[rows, columns]
    turn = np.argsort(group + clock / (1 + clock), kind="stable")
    first = np.concatenate([[0], np.cumsum(groups.open)[:-1]])
    number = np.arange(1, len(turn) + 1) - first[group[turn]]
    late = rng.random(len(groups.open))
    value = (number - late[group[turn]]) / groups.weight[group[turn]]
    found[rows[turn], columns[turn]] = value
    return found


def coefficients(metric: Metric, levels: Floats) -> tuple[Floats, Floats]:
    """Coefficients of the truth of tags, and of other pairs, in a claim."""
    if metric == "recall":
        return 1 - levels, -levels
    return np.ones_like(levels), np.zeros_like(levels)


def count_below(scores: Scores, grid: Floats) -> Ints:
    """How many thresholds each score exceeds."""
    found: Ints = np.searchsorted(grid, scores.ravel(), side="left")
    return found


def above_and_below(sums: Any) -> tuple[Any, Any]:
    """Sums above and below each threshold, from sums between thresholds ``(..., H + 1)``."""
    below = np.cumsum(sums, axis=-1)
    return below[..., -1:] - below[..., :-1], below[..., :-1]


def image_sums(values: Any, place: Ints, count: int, size: int) -> tuple[Any, Any]:
    """Sums of each image above and below each threshold ``(count, size)``."""
    sums = np.bincount(place, values, minlength=count * (size + 1)).reshape(count, size + 1)
    return above_and_below(sums)


def image_means(metric: int, hits: Floats, missed: Floats, tags: Floats) -> Floats:
    """Recall (0) or precision (1) of each image; 1 where there is nothing to find, or no tag."""
    whole = tags if metric else hits + missed
    found = np.ones_like(hits)
    np.divide(hits, whole, out=found, where=whole > 1e-9)
    return np.clip(found, 0.0, 1.0)


def ascending(scores: Scores, probs: Any) -> tuple[Scores, Any]:
    """Scores from the lowest, and expected labels of each of them; of some of very many."""
    every = max(1, scores.size // _ENTRIES_AT_ONCE)
    some = scores.ravel()[::every]
    order = np.argsort(some, kind="stable")
    order = order[np.searchsorted(some, -np.inf, side="right", sorter=order) :]
    return some[order], probs.ravel()[::every][order]


def _smooth(present: Any) -> Floats:
    """A logistic curve of second degree in the normal scores of ranks, fitted to these values."""
    edges = np.unique(np.linspace(0, len(present), _BINS + 1).astype(np.int64))
    count = np.diff(edges)
    mean = np.add.reduceat(present.astype(np.float64), edges[:-1]) / count
    x = ndtri((edges[:-1] + edges[1:]) / (2 * len(present)))
    design = np.stack([np.ones_like(x), x, x * x], axis=1)
    theta = np.zeros(3)
    for _ in range(_STEPS):
        p = expit(design @ theta)
        slope = design.T @ (count * (mean - p)) - theta
        bend = (design * (count * p * (1 - p))[:, None]).T @ design + np.eye(3)
        theta = theta + np.clip(np.linalg.solve(bend, slope), -1, 1)
    found: Floats = np.repeat(expit(design @ theta), count)
    return found


def draw_weights(scores: Scores, probs: Any, metric: Metric, wanted: float) -> Any:
    """Weights to draw pairs with: small where an answer cannot decide about the promise."""
    found = np.sqrt(probs * (1 - probs) + np.float32(priors.PROMISE_SD**2))
    ranked, present = ascending(scores, probs)
    if not len(ranked):
        return found
    below = np.cumsum(present, dtype=np.float64)
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
