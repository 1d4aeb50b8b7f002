"""Observation models by name: how labels were lost, in words and as options of a command."""

from __future__ import annotations

from hilltop.checks import check_choice
from hilltop.errors import ArgumentError
from hilltop.losses import CountLikelihood
from hilltop.losses.likelihood import Likelihood, count_nll, scar_nll

TINY_RESTORE_PROB = 0.001
"""Probability that a lost label was put back, where nobody has reviewed the labels.

Not 0: every rule can then lead to every image, and likelihoods can be compared."""


def describe_model(loss: Likelihood) -> str:
    """Name a model and its number.

    Example:
        >>> describe_model(count_nll(0.8)), describe_model(scar_nll(0.4))
        ('count_likelihood(r=0.8)', 'scar_likelihood(label_frequency=0.4)')
    """
    if isinstance(loss, CountLikelihood):
        prob = loss.rule.restore_prob
        restored = f", restore_prob={prob:g}" if prob > TINY_RESTORE_PROB else ""
        return f"count_likelihood(r={float(loss.rule.missing_ratio):g}{restored})"
    return f"scar_likelihood(label_frequency={float(loss.frequency().mean()):.2g})"


def build_likelihood(name: str, *, r: float | None, keep: float | None) -> Likelihood | None:
    """Build the model that a user names; None for ``auto``.

    Raises:
        ArgumentError: The name is not that of an observation model, or an option is not its own.
    """
    check_choice("--loss", name, ("auto", "count_likelihood", "scar_likelihood"))
    if r is not None and name != "count_likelihood":
        raise ArgumentError("--r belongs to --loss count_likelihood.")
    if keep is not None and name != "scar_likelihood":
        raise ArgumentError("--keep belongs to --loss scar_likelihood.")
    if name == "count_likelihood":
        return count_nll(0.8 if r is None else r)
    if name == "scar_likelihood":
        return scar_nll(0.6 if keep is None else keep)
    return None
