"""Presets: losses of the paper by its own names, ready to call; see focal.py and splc.py too."""

from __future__ import annotations

from typing import Unpack

from hilltop.losses.catalogue import LOSSES, Common, CommonWithoutSmoothing
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.terms import (
    FocalNegative,
    FocalPositive,
    HillNegative,
    LogNegative,
    LogPositive,
    MseNegative,
    WeakNegative,
)


@LOSSES.register("bce")
def bce(**common: Unpack[Common]) -> MultiLabelLoss:
    r"""Binary cross-entropy: every unlabelled entry is a true negative.

    .. math:: \ell^+ = -\log p, \qquad \ell^- = -\log(1 - p)

    Assumption:
        Unlabelled entries are true negatives.

    When to use:
        When labels are complete, and as the line that every other loss has to beat.

    Example:
        >>> bce()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.2201)
    """
    return MultiLabelLoss(positive=LogPositive(), negative=LogNegative(), **common)


@LOSSES.register("wan")
def wan(*, weight: float | None = None, **common: Unpack[Common]) -> MultiLabelLoss:
    r"""Weak assume-negatives: cross-entropy with a small weight on unlabelled entries.

    .. math:: \ell^+ = -\log p, \qquad \ell^- = -w \log(1 - p), \qquad w = 1/(K-1)

    Assumption:
        Unlabelled entries are weak negatives.

    When to use:
        When labels are very sparse and you want cross-entropy that is simply less sure of what is
        not labelled.

    Args:
        weight: The w of the equation; None takes :math:`1/(K-1)` for K classes.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return MultiLabelLoss(positive=LogPositive(), negative=WeakNegative(weight=weight), **common)


@LOSSES.register("bce_ls")
def bce_ls(
    *, label_smoothing: float = 0.1, **common: Unpack[CommonWithoutSmoothing]
) -> MultiLabelLoss:
    r"""Binary cross-entropy with label smoothing: targets 1 - eps and eps.

    .. math:: \ell = -t \log p - (1 - t) \log(1 - p), \qquad t = y (1 - \epsilon) + (1 - y) \epsilon

    Assumption:
        Unlabelled entries are probably negatives.

    When to use:
        When a few labels are wrong in both directions. It does not know that missing labels are the
        usual fault.

    Args:
        label_smoothing: The eps of the equation: how far targets move from 0 and 1.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return MultiLabelLoss(
        positive=LogPositive(),
        negative=LogNegative(),
        label_smoothing=label_smoothing,
        **common,
    )


@LOSSES.register("mse")
def mse(**common: Unpack[Common]) -> MultiLabelLoss:
    r"""Cross-entropy positives with squared-error negatives, the paper's "MSE-".

    .. math:: \ell^+ = -\log p, \qquad \ell^- = p^2

    Assumption:
        Unlabelled entries are forgiven when confident.

    When to use:
        To see how much of the Hill loss is due to squaring: it is the step between cross-entropy
        and Hill.
    """
    return MultiLabelLoss(positive=LogPositive(), negative=MseNegative(), **common)


@LOSSES.register("focal_margin")
def focal_margin(
    *,
    gamma: float = 2.0,
    margin: float = 1.0,
    gamma_neg: float | None = None,
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""Focal loss whose positives carry a margin, so that semi-hard ones count most.

    .. math:: \ell^+ = -(1-p_m)^\gamma \log p_m, \qquad \ell^- = -p^\gamma \log(1 - p)

    Assumption:
        As in `focal`, unlabelled entries are negatives, the easy ones down-weighted.

    When to use:
        As a base for corrections, or when half-learned positives deserve more attention. It is the
        positive term of the Hill loss of the paper, with Focal negatives.

    Args:
        gamma: How strongly easy entries are down-weighted.
        margin: The m in :math:`p_m = \sigma(x - m)`; 0.5 to 1 is recommended, 0 gives Focal.
        gamma_neg: The same as gamma for negatives alone; None takes gamma, 0 gives those of
            cross-entropy (the paper's "Focal margin+").
        **common: Options of :class:`MultiLabelLoss`.
    """
    return MultiLabelLoss(
        positive=FocalPositive(gamma=gamma, margin=margin),
        negative=FocalNegative(gamma=gamma if gamma_neg is None else gamma_neg),
        **common,
    )


@LOSSES.register("hill")
def hill(
    *, lam: float = 1.5, margin: float = 1.0, gamma: float = 2.0, **common: Unpack[Common]
) -> MultiLabelLoss:
    r"""Hill loss: Focal margin positives, and negatives that are forgiven when confident.

    .. math:: \ell^+ = -(1-p_m)^\gamma \log p_m, \qquad \ell^- = (\lambda - p)\,p^2

    Assumption:
        Unlabelled entries are forgiven when confident.

    When to use:
        When a network is fine-tuned on incomplete labels and one line is all you want to change:
        nothing is relabelled, nothing needs an epoch, and there is hardly anything to tune.

    Args:
        lam: Height of the hill; 1.5 puts the turning point of the gradient at p = 0.5.
        margin: The m in :math:`p_m = \sigma(x - m)`.
        gamma: How strongly easy positives are down-weighted.
        **common: Options of :class:`MultiLabelLoss`.

    Example:
        >>> hill()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.0558)

    Reference:
        Eq. 5 and 11 of "Simple and Robust Loss Design for Multi-Label Learning with Missing
        Labels".

    Note:
        Two lines replace ``BCEWithLogitsLoss``: ``criterion = hill()`` and, for a new
        classification head, ``init_head(model, criterion, targets)``. Without the second line,
        training begins with a :class:`SafeStart`: from bias 0 negatives can overshoot to where the
        gradient of the hill vanishes and stay there.
    """
    return MultiLabelLoss(
        positive=FocalPositive(gamma=gamma, margin=margin), negative=HillNegative(lam=lam), **common
    )
