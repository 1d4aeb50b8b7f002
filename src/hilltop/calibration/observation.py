"""Which observation model the audit reads the labels by: the most probable, or the given one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from torch import Tensor

from hilltop.calibration.keep_rate import Fitted, estimate_keep
from hilltop.calibration.scaling import calibrate
from hilltop.checks import check_choice
from hilltop.errors import ArgumentError
from hilltop.losses import KeptByCount
from hilltop.losses.likelihood.choose import Likelihood, summed_by_count, summed_independently

LEAST_KEEP = 0.01
"""The interval of the keep rate is looked at from here on."""
RATIOS = (Fraction(1, 2), Fraction(4, 5), Fraction(1))
"""Missing ratios of the paper that are tried."""
MOST_EMPTY = 0.25
"""Share of images without a label up to which a count rule is taken: it leaves none empty, but
some may truly be."""
TINY_RESTORE_PROB = 0.001
"""Probability that a lost label was put back, where nobody has reviewed the labels.

Not 0: every rule can then lead to every image, and likelihoods can be compared."""


@dataclass(frozen=True)
class ModelSelection:
    """How the labels are read.

    Attributes:
        best: The model that candidates are ranked by.
        others: Models that could be true as well: the best one of the other kind, and those at the
            ends of the keep rate's interval. How far their estimates differ is what the choice
            decides.
        sentence: What was found, in words.
    """

    best: Fitted
    others: tuple[Fitted, ...]
    sentence: str


def select_model(
    logits: Tensor,
    targets: Tensor,
    *,
    observed: Tensor | None = None,
    given: Likelihood | None = None,
) -> ModelSelection:
    """Fit observation models to scores that never saw the labels.

    Args:
        logits: Such scores ``(N, C)``.
        targets: 1 for labelled, 0 for not labelled.
        observed: True where a person confirmed the target.
        given: The model to rank by; without it the one under which the labels are most probable.
    """
    keep, alone = estimate_keep(logits, targets, observed=observed)
    start = alone.calibration

    def fitted(loss: Likelihood) -> Fitted:
        return Fitted(loss, calibrate(loss, logits, targets, observed=observed, start=start))

    def cost(model: Fitted) -> float:
        return model.calibration.loss

    counted = min(
        (fitted(summed_by_count(r, restore_prob=TINY_RESTORE_PROB)) for r in RATIOS), key=cost
    )
    if given is not None:
        other = alone if isinstance(given, KeptByCount) else counted
        return ModelSelection(
            fitted(given), (other,), f"ranked by {describe_model(given)}, as asked."
        )
    best, other = sorted((alone, counted), key=cost)
    behind = f"is behind by {(cost(other) - cost(best)) / max(1, len(targets)):.3f} nats an image"
    empty = float((targets.nansum(dim=1) == 0).float().mean())
    if empty > MOST_EMPTY:
        best, other = alone, counted
        behind = f"leaves no image without a label, but {empty:.0%} have none"
    sentence = (
        f"the labels are most probable under {describe_model(best.loss)};"
        f" {describe_model(other.loss)} {behind}."
    )
    ends = (min(max(end, LEAST_KEEP), 1.0) for end in (keep.low, keep.high))
    others = (other, *(fitted(summed_independently(end)) for end in ends))
    return ModelSelection(best, others, sentence)


def describe_model(loss: Likelihood) -> str:
    """Name a model and its number.

    Example:
        >>> describe_model(summed_by_count(0.8)), describe_model(summed_independently(0.4))
        ('kept_by_count(r=0.8)', 'kept_independently(keep=0.4)')
    """
    if isinstance(loss, KeptByCount):
        prob = loss.rule.restore_prob
        restored = f", restore_prob={prob:g}" if prob > TINY_RESTORE_PROB else ""
        return f"kept_by_count(r={float(1 - loss.rule.keep):g}{restored})"
    return f"kept_independently(keep={float(loss.rate().mean()):.2g})"


def build_likelihood(name: str, *, r: float | None, keep: float | None) -> Likelihood | None:
    """Build the model that a user names; None for ``auto``.

    Raises:
        ArgumentError: The name is not that of an observation model, or an option is not its own.
    """
    check_choice("--loss", name, ("auto", "kept_by_count", "kept_independently"))
    if r is not None and name != "kept_by_count":
        raise ArgumentError("--r belongs to --loss kept_by_count.")
    if keep is not None and name != "kept_independently":
        raise ArgumentError("--keep belongs to --loss kept_independently.")
    if name == "kept_by_count":
        return summed_by_count(0.8 if r is None else r)
    if name == "kept_independently":
        return summed_independently(0.6 if keep is None else keep)
    return None
