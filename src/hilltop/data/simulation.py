"""Simulates missing labels: a complete table in, a thinned one out, from a seed.

:func:`drop_positives` is the paper's rule, :func:`keep_each` loses labels independently, and the
functions that begin with ``lose_by`` lose them as people do: by class, batch, annotator, clarity
and size.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilltop.checks import check_exact, check_number, check_same_shape
from hilltop.data.label_table import LabelTable, State, Step
from hilltop.errors import ArgumentError


class Thinned(NamedTuple):
    """A table with labels removed, and the removed labels, with which recovery can be scored."""

    table: LabelTable
    dropped: LabelTable


def drop_positives(table: LabelTable, r: float | str | Fraction, *, seed: int) -> Thinned:
    """Drop labels by the paper's rule: of n labels, ``floor(n * (1 - r)) + 1`` stay, at most n.

    Which ones is drawn without replacement. The arithmetic is exact: 5 labels at r = 0.8 keep 2.
    An image without a label stays empty. In the result unlisted pairs are unknown; pairs that are
    listed as absent stay so.

    Args:
        table: The complete labels.
        r: Missing ratio; 0.5, 0.8 and 1 are the paper's "75% left", "40% left", "single label".
        seed: The same seed gives the same labels on every machine.
    """
    ratio = check_exact("r", r, low=0, high=1)
    per_image = table.labels_per_image()
    most = int(per_image.max(initial=0))
    stay = np.array([min(n, int(n * (1 - ratio)) + 1) for n in range(most + 1)])[per_image]
    present = table.states == State.PRESENT
    draws = _random(int(per_image.sum()), seed)
    # Only images that lose labels are sorted: by image, the high bits of a key, then at random.
    loses = stay < per_image
    counts, contested = per_image[loses], np.repeat(loses, per_image)
    image_bits = len(table).bit_length()
    key = np.repeat(np.flatnonzero(loses), counts).astype(np.uint64) << np.uint64(64 - image_bits)
    key |= draws[contested] >> np.uint64(image_bits)
    rank = np.arange(len(key)) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = np.empty(len(key), dtype=bool)
    chosen[np.argsort(key, kind="stable")] = rank < np.repeat(stay[loses], counts)
    kept = np.ones(len(draws), dtype=bool)
    kept[contested] = chosen
    return _thin(table, present, kept, Step("drop_positives", {"r": str(r)}, seed=seed))


def single_positive(table: LabelTable, *, seed: int) -> Thinned:
    """Keep one label of every image that has any: the paper's rule at r = 1."""
    return drop_positives(table, 1, seed=seed)


def keep_each(table: LabelTable, keep: float | Mapping[str, float], *, seed: int) -> Thinned:
    """Keep every label with a probability of its own, independently of the others.

    Args:
        table: The complete labels.
        keep: One probability, or one for each class by name.
        seed: The same seed gives the same labels on every machine.
    """
    if isinstance(keep, Mapping):
        unknown = set(keep) ^ set(table.classes)
        if unknown:
            raise ArgumentError(
                f"keep must name every class of the table once; {min(unknown)!r} is in one only."
            )
        probs = [keep[name] for name in table.classes]
    else:
        probs = [keep] * len(table.classes)
    probs = [check_number("keep", prob, low=0, high=1) for prob in probs]
    described = dict(keep) if isinstance(keep, Mapping) else keep
    step = Step("keep_each", {"keep": described}, seed=seed)
    return keep_with(table, np.array(probs), step=step, seed=seed)


def keep_with(
    table: LabelTable, keep: npt.NDArray[np.float64], *, step: Step, seed: int
) -> Thinned:
    """Keep every label with a probability, one for each class or for each pair.

    Args:
        table: The complete labels.
        keep: Probabilities ``(classes,)`` or ``(images, classes)``.
        step: What is written into the history.
        seed: The same seed gives the same labels on every machine.
    """
    # Compared as whole numbers: the same on every machine, and 1.0 keeps everything.
    limits = (keep * 2.0**53).astype(np.uint64)
    present = table.states == State.PRESENT
    draws = _random(int(np.count_nonzero(present)), seed) >> np.uint64(11)
    places = (table.columns,) if keep.ndim == 1 else (table.rows, table.columns)
    kept = draws < limits[tuple(place[present] for place in places)]
    return _thin(table, present, kept, step)


def _random(size: int, seed: int) -> npt.NDArray[np.uint64]:
    """Random bits whose sequence numpy guarantees for a seed, unlike its distributions'."""
    check_number("seed", seed, low=0)
    return np.random.PCG64(seed).random_raw(size)


def _thin(
    table: LabelTable, present: npt.NDArray[np.bool_], kept: npt.NDArray[np.bool_], step: Step
) -> Thinned:
    # Unlisted pairs were absent only because the list was complete; now it is not.
    lost = np.zeros(len(present), dtype=bool)
    lost[present] = ~kept
    without = np.where(lost, np.int8(State.UNKNOWN), table.states)
    only = np.where(lost, np.int8(State.PRESENT), np.int8(State.UNKNOWN))
    thinned, dropped = (
        table.with_entry_states(states, step=step, unlisted=State.UNKNOWN)
        for states in (without, only)
    )
    return Thinned(thinned, dropped)


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
