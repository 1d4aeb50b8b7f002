"""Average precision, from whole arrays."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from hilltop.checks import check_choice, pluralize
from hilltop.errors import HilltopWarning
from hilltop.metrics.arrays import Column, Floats, ScoredTargets

Empty = Literal["skip", "zero"]


class EmptyClassWarning(HilltopWarning):
    """Some classes have no positive entry and were left out of a mean."""


def average_precision(scores: Any, targets: Any, *, known: Any = None) -> Floats:
    r"""Average precision of every class, with ties grouped as in scikit-learn.

    .. math:: AP = \frac{1}{P} \sum_{i:\,y_i=1} \frac{\#\{j : y_j=1, s_j \ge s_i\}}{\#\{j : s_j \ge s_i\}}

    Args:
        scores: ``(N, C)`` array or tensor of any floating dtype; higher means more likely.
        targets: ``(N, C)``, 1 for present, 0 for absent, NaN for unknown.
        known: ``(N, C)`` of bool; False leaves an entry out, like a NaN target.

    Returns:
        One value in [0, 1] for each class, NaN for a class without a positive entry.

    Example:
        >>> average_precision([[0.9, 0.1], [0.8, 0.7], [0.3, 0.6]], [[1, 0], [0, 0], [1, 1]])
        array([0.83333333, 0.5       ])
    """  # noqa: E501 (an equation is one line)
    return precision_by_class(ScoredTargets(scores, targets, known))


def mean_average_precision(
    scores: Any,
    targets: Any,
    *,
    known: Any = None,
    empty: Empty = "skip",
    class_names: Sequence[str] | None = None,
) -> float:
    """Plain mean of :func:`average_precision` over classes.

    Args:
        scores: ``(N, C)`` array or tensor of any floating dtype; higher means more likely.
        targets: ``(N, C)``, 1 for present, 0 for absent, NaN for unknown.
        known: ``(N, C)`` of bool; False leaves an entry out, like a NaN target.
        empty: What a class without positives does: ``"skip"`` (the default) leaves it out of the
            mean and names it in an :class:`EmptyClassWarning`, ``"zero"`` counts it as 0.
        class_names: Names for that warning.

    Returns:
        A fraction in [0, 1]; NaN if no class is left.

    Example:
        >>> mean_average_precision([[0.9, 0.1], [0.8, 0.7]], [[0, 1], [1, 0]])
        0.5
    """
    check_choice("empty", empty, get_args(Empty))
    judged = ScoredTargets(scores, targets, known, class_names)
    precisions = precision_by_class(judged)
    without = [judged.names[number] for number in np.flatnonzero(np.isnan(precisions))]
    if empty == "skip" and without:
        total = pluralize(judged.classes, "class", "classes")
        left_out = pluralize(
            len(without),
            f"of {total} has no positive entry and is",
            f"of {total} have no positive entry and are",
        )
        warnings.warn(
            f"{left_out} left out of the mean: {shortened(without)}. Pass empty='zero' to count"
            " such classes as 0.",
            EmptyClassWarning,
            stacklevel=2,
        )
    return mean_over_classes(precisions, np.isnan(precisions), empty)


def precision_by_class(judged: ScoredTargets) -> Floats:
    """Average precision of every class, found where the scores are."""
    if judged.on_device:
        from hilltop.metrics.on_device import measured_on_device

        found: Floats = measured_on_device(judged, np.zeros(judged.classes))[0]
        return found
    return np.array(judged.each_class(column_average_precision))


def column_average_precision(column: Column) -> float:
    """Average precision of one class; NaN without positives."""
    # Sorting values is far faster than sorting positions, and where a value stands among all and
    # among the positives is all that precision needs.
    everything, positives = np.sort(column.scores), np.sort(column.scores[column.present])
    if positives.size == 0:
        return float("nan")
    at_least = everything.size - np.searchsorted(everything, positives, side="left")
    hits = positives.size - np.searchsorted(positives, positives, side="left")
    return float(np.mean(hits / at_least))


def mean_over_classes(values: Floats, is_empty: Any, empty: Empty) -> float:
    """Mean over classes under the rule for classes without positives."""
    if empty == "zero":
        return float(np.where(is_empty, 0.0, values).mean()) if values.size else float("nan")
    kept = values[~is_empty]
    return float(kept.mean()) if kept.size else float("nan")


def shortened(names: Sequence[str], most: int = 10) -> str:
    """The first names of a list, and how many more there are."""
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"
