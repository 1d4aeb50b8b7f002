"""Observation models by name: how labels were lost, in words and as options of a command."""

from __future__ import annotations

from hilltop.checks import check_choice
from hilltop.errors import ArgumentError
from hilltop.losses import KeptByCount
from hilltop.losses.likelihood.summed import Likelihood, summed_by_count, summed_independently

TINY_RESTORE_PROB = 0.001
"""Probability that a lost label was put back, where nobody has reviewed the labels.

Not 0: every rule can then lead to every image, and likelihoods can be compared."""


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
