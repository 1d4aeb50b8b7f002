"""Pictures of a missing-label model: candidates, label frequency by class, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hilltop.errors import MissingExtra
from hilltop.missing.model import MissingCounts, MissingLabelModel

_MAX_CLASSES = 20


def plot_audit(
    probs: npt.NDArray[Any],
    counts: MissingCounts,
    model: MissingLabelModel,
    classes: Sequence[str],
) -> Any:
    """Draw the three panels and return the matplotlib figure.

    Args:
        probs: Probabilities of the candidates, highest first.
        counts: How many labels are missing.
        model: Whose calibration is drawn.
        classes: Names of the classes.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("plot", error.name, "train") from None
    figure = Figure(figsize=(13, 4), layout="constrained")
    candidates, frequency, calibration = figure.subplots(1, 3)
    found = np.cumsum(probs, dtype=np.float64)
    candidates.plot(np.arange(1, len(found) + 1), found)
    candidates.set(
        title="Missing labels expected among the first candidates",
        xlabel="candidates reviewed",
        ylabel="missing labels found",
        xscale="log",
    )
    order = np.argsort(-counts.labelled, kind="stable")[:_MAX_CLASSES][::-1]
    labelled = np.maximum(counts.labelled[order], 1e-9)
    middle, low, high = (labelled / (labelled + counts.by_class[at, order]) for at in (0, 2, 1))
    places = np.arange(len(order))
    errors = np.stack([np.maximum(middle - low, 0), np.maximum(high - middle, 0)])
    frequency.errorbar(middle, places, xerr=errors, fmt="o")
    frequency.set(
        title="Label frequency by class, 90% intervals",
        xlabel="share of the true labels that is recorded",
        xlim=(0, 1.02),
    )
    frequency.set_yticks(places, [classes[at] for at in order])
    scores = np.linspace(-8, 8, 101)
    for at in order[-5:]:
        column = np.tile(scores[:, None], (1, len(classes)))
        calibration.plot(scores, model.probs(column)[:, at], label=classes[at])
    calibration.plot(scores, 1 / (1 + np.exp(-scores)), "k:", label="score as it is")
    calibration.set(
        title="Probability of truth by score",
        xlabel="logit of the score",
        ylabel="probability that the label is true",
    )
    calibration.legend()
    return figure
