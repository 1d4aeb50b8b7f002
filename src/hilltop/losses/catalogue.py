"""The losses by name, the options they share, and how a correction goes over one of them."""

from __future__ import annotations

from typing import Any, TypedDict

from hilltop.errors import ArgumentTypeError
from hilltop.losses.base import Loss
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.reduction import Reduction
from hilltop.losses.terms.correction import Correction
from hilltop.losses.weights import ClassWeight
from hilltop.registry import Registry

LOSSES: Registry[Loss] = Registry("loss")


class Common(TypedDict, total=False):
    """Options that every preset passes on to :class:`MultiLabelLoss`."""

    reduction: Reduction
    class_weight: ClassWeight | None
    pos_weight: ClassWeight | None
    watch: bool


def build(name: str, **options: Any) -> Loss:
    """Return the loss registered under ``name``.

    Raises:
        ArgumentError: The name is not known.
        ArgumentTypeError: An option is not known.

    Example:
        >>> build("hill", margin=0.5).positive
        FocalPositive(gamma=2, margin=0.5, detach_weight=False)
    """
    return LOSSES.build(name, **options)


def corrected(
    name: str, base: MultiLabelLoss | str, correction: Correction, common: Common
) -> MultiLabelLoss:
    """Put a correction over a loss, given as it is or by name.

    Args:
        name: Name of the preset that asks, for messages.
        base: A loss made of terms, or its name.
        correction: Which unlabelled entries to take for missing labels.
        common: Options of :class:`MultiLabelLoss`, where ``base`` is a name.
    """
    if isinstance(base, MultiLabelLoss) and common:
        raise ArgumentTypeError(
            f"{name}(base) takes {', '.join(common)} from the given base;"
            " set it there, or give the base by name."
        )
    inner: object = build(base, **common) if isinstance(base, str) else base
    if not isinstance(inner, MultiLabelLoss):
        kind = type(inner).__name__
        raise ArgumentTypeError(
            f"base must be a hilltop loss made of terms, or its name, but got {kind}."
        )
    return inner.with_correction(correction)
