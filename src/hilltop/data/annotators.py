"""Simulates labels as people lose them: by class, batch, annotator, clarity and size.

The rule of the paper and independent loss are in :mod:`hilltop.data.missing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_number, check_same_shape
from hilltop.data.history import Step
from hilltop.data.label_table import LabelTable
from hilltop.data.missing import Thinned, drop_positives, keep_each, keep_with
from hilltop.data.state import State

Shares = npt.NDArray[np.float64]

CAREFUL, HASTY, BLIND = 0.92, 0.6, 0.05
"""Share of the labels that a careful annotator writes down, a hasty one, and one to whom the
class is unknown."""
BLIND_CLASSES = 0.4
"""Share of the classes that the hasty annotator does not know."""
LEAST_CLEAR, MOST_CLEAR = 0.15, 0.95
"""Probability that the least clear and the clearest case of a class is written down."""
SEEN_SIZE = 0.3
"""Share of the picture from which on an object is always written down."""
LEAST_SEEN = 0.1
"""Probability that the smallest is."""


def lose_by_class(table: LabelTable, *, low: float = 0.2, high: float = 1.0, seed: int) -> Thinned:
    """Keep the labels of each class with a probability of its own.

    Args:
        table: The complete labels.
        low: Least probability.
        high: Greatest one.
        seed: The same seed gives the same labels.
    """
    check_number("low", low, low=0, high=1)
    check_number("high", high, low=low, high=1)
    rates = np.random.default_rng([seed, 1]).uniform(low, high, len(table.classes))
    return keep_each(table, dict(zip(table.classes, rates.tolist(), strict=True)), seed=seed)


def lose_by_batch(table: LabelTable, *, complete: float = 0.3, seed: int) -> Thinned:
    """Keep every label in some images, and one in each of the others.

    Args:
        table: The complete labels.
        complete: Share of the images that stay complete.
        seed: The same seed gives the same labels.
    """
    check_number("complete", complete, low=0, high=1)
    whole = np.random.default_rng([seed, 1]).random(len(table)) < complete
    single = drop_positives(table, 1, seed=seed).table
    stays = (single.dense() == State.PRESENT) | whole[:, None]
    return _keep(table, stays.astype(np.float64), "lose_by_batch", {"complete": complete}, seed)


def lose_by_annotator(table: LabelTable, *, seed: int) -> Thinned:
    """Deal images to a careful annotator and to a hasty one who does not know some classes.

    Args:
        table: The complete labels.
        seed: The same seed gives the same labels.
    """
    rng = np.random.default_rng([seed, 1])
    hasty = np.where(rng.random(len(table.classes)) < BLIND_CLASSES, BLIND, HASTY)
    careful = rng.random(len(table)) < 0.5
    keep = np.where(careful[:, None], CAREFUL, hasty)
    return _keep(table, keep, "lose_by_annotator", {}, seed)


def lose_by_clarity(table: LabelTable, scores: npt.ArrayLike, *, seed: int) -> Thinned:
    """Keep clear cases rather than doubtful ones.

    Args:
        table: The complete labels.
        scores: How clear each pair is ``(images, classes)``; only its order in a class counts.
        seed: The same seed gives the same labels.
    """
    clear = np.asarray(scores, dtype=np.float64)
    check_same_shape("scores", clear.shape, "the table", (len(table), len(table.classes)))
    present, keep = table.dense() == State.PRESENT, np.zeros(clear.shape)
    for column in range(clear.shape[1]):
        rows = np.flatnonzero(present[:, column])
        rank = clear[rows, column].argsort().argsort() / max(1, len(rows) - 1)
        keep[rows, column] = LEAST_CLEAR + (MOST_CLEAR - LEAST_CLEAR) * rank
    return _keep(table, keep, "lose_by_clarity", {}, seed)


def lose_by_size(table: LabelTable, sizes: npt.ArrayLike, *, seed: int) -> Thinned:
    """Keep large objects rather than small ones.

    Args:
        table: The complete labels.
        sizes: Share of its picture that an object fills ``(images, classes)``, 0 to 1.
        seed: The same seed gives the same labels.
    """
    share = np.asarray(sizes, dtype=np.float64)
    check_same_shape("sizes", share.shape, "the table", (len(table), len(table.classes)))
    keep = LEAST_SEEN + (1 - LEAST_SEEN) * np.sqrt(np.clip(share, 0.0, None) / SEEN_SIZE)
    return _keep(table, np.clip(keep, 0.0, 1.0), "lose_by_size", {}, seed)


def _keep(
    table: LabelTable, keep: Shares, name: str, options: Mapping[str, Any], seed: int
) -> Thinned:
    return keep_with(table, keep, step=Step(name, dict(options), seed=seed), seed=seed)
