"""Observation models by enumeration: every set of true labels, one after the other.

Written from the definition of the two processes, in plain Python, without looking at the package.
An entry of ``targets`` is 1, 0, or None for unknown; classes whose target is unknown do not exist.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from tests.reference import sigmoid

Written = Callable[[frozenset[int], frozenset[int]], float]


class Enumerated(NamedTuple):
    """Minus log likelihood of one image, its gradient by every logit, and the posterior."""

    loss: float
    grad: list[float]
    posterior: list[float]


def kept_of(labels: int, r: Fraction) -> int:
    return 0 if labels == 0 else min(labels, math.floor(labels * (1 - r)) + 1)


def by_count(r: Fraction) -> Written:
    """Chance that the rule writes down ``written`` if ``true`` are the labels."""

    def prob(true: frozenset[int], written: frozenset[int]) -> float:
        if not written <= true or len(written) != kept_of(len(true), r):
            return 0.0
        return 1 / math.comb(len(true), len(written))

    return prob


def by_count_and_put_back(r: Fraction, restore_prob: float) -> Written:
    """The same, if each label that was not written down was put back with a chance of its own."""

    def prob(true: frozenset[int], written: frozenset[int]) -> float:
        if not written <= true:
            return 0.0
        stay, total = kept_of(len(true), r), 0.0
        for first in itertools.combinations(sorted(true), stay):
            if written >= set(first):
                back = len(written) - stay
                total += restore_prob**back * (1 - restore_prob) ** (len(true) - len(written))
        return total / math.comb(len(true), stay)

    return prob


def independently(keep: Sequence[float]) -> Written:
    def prob(true: frozenset[int], written: frozenset[int]) -> float:
        if not written <= true:
            return 0.0
        return math.prod(keep[k] if k in written else 1 - keep[k] for k in true)

    return prob


def enumerate_image(
    logits: Sequence[float],
    targets: Sequence[int | None],
    observed: Sequence[bool],
    prob: Written,
) -> Enumerated:
    """Sum over all sets of true labels that contain no confirmed absent."""
    classes = range(len(logits))
    known = [k for k in classes if targets[k] is not None]
    written = frozenset(k for k in known if targets[k] == 1)
    absent = {k for k in known if targets[k] == 0 and observed[k]}
    probs = [sigmoid(x) for x in logits]
    weights: dict[frozenset[int], float] = {}
    for size in range(len(known) + 1):
        for members in itertools.combinations(known, size):
            true = frozenset(members)
            prior = math.prod(probs[k] if k in true else sigmoid(-logits[k]) for k in known)
            weights[true] = 0.0 if true & absent else prior * prob(true, written)
    if not any(prob(true, written) for true in weights if not true & absent):
        # No process leads here: the image is taken as complete.
        prior = math.prod(probs[k] if k in written else sigmoid(-logits[k]) for k in known)
        weights = {written: prior}
    total = math.fsum(weights.values())
    present = [
        math.fsum(w for true, w in weights.items() if k in true) / total if k in known else probs[k]
        for k in classes
    ]
    return Enumerated(
        loss=-math.log(total),
        grad=[probs[k] - present[k] if k in known else 0.0 for k in classes],
        posterior=present,
    )
