"""Presets: losses of the paper by the names it gives them, ready to call; see self_paced.py too."""

from __future__ import annotations

from typing import Unpack

from hilltop.losses.catalogue import LOSSES, Common
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.terms.negative import (
    FocalNegative,
    HillNegative,
    LogNegative,
    MseNegative,
    ShiftedFocalNegative,
    WeakNegative,
)
from hilltop.losses.terms.positive import FocalPositive, LogPositive


@LOSSES.register("bce")
def bce(**common: Unpack[Common]) -> MultiLabelLoss:
    r"""Binary cross-entropy: every unlabelled entry is a true negative.

    .. math:: \ell^+ = -\log p, \qquad \ell^- = -\log(1 - p)

    Example:
        >>> bce()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.2201)
    """
    return MultiLabelLoss(positive=LogPositive(), negative=LogNegative(), **common)


@LOSSES.register("wan")
def wan(*, weight: float | None = None, **common: Unpack[Common]) -> MultiLabelLoss:
    r"""Weak assume-negatives: cross-entropy with a small weight on unlabelled entries.

    .. math:: \ell^+ = -\log p, \qquad \ell^- = -w \log(1 - p), \qquad w = 1/(K-1)

    Args:
        weight: The w of the equation; None takes :math:`1/(K-1)` for K classes.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return MultiLabelLoss(positive=LogPositive(), negative=WeakNegative(weight=weight), **common)


@LOSSES.register("bce_ls")
def bce_ls(*, eps: float = 0.1, **common: Unpack[Common]) -> MultiLabelLoss:
    r"""Binary cross-entropy with label smoothing: targets 1 - eps and eps.

    .. math:: \ell = -t \log p - (1 - t) \log(1 - p), \qquad t = y (1 - \epsilon) + (1 - y) \epsilon

    Args:
        eps: How far targets move from 0 and 1.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return MultiLabelLoss(
        positive=LogPositive(), negative=LogNegative(), label_smoothing=eps, **common
    )


@LOSSES.register("focal")
def focal(*, gamma: float = 2.0, **common: Unpack[Common]) -> MultiLabelLoss:
    r"""Focal loss, the equation: hard entries count more.

    .. math:: \ell^+ = -(1-p)^\gamma \log p, \qquad \ell^- = -p^\gamma \log(1 - p)

    Args:
        gamma: How strongly easy entries are played down; 0 gives cross-entropy.
        **common: Options of :class:`MultiLabelLoss`.

    Note:
        The gradient flows through the weights; :func:`focal_released` holds them constant.
    """
    return _focal(gamma, False, common)


@LOSSES.register("focal_released")
def focal_released(*, gamma: float = 2.0, **common: Unpack[Common]) -> MultiLabelLoss:
    r"""Focal loss as in the released code: the weights are constants in the gradient.

    .. math:: \ell^+ = -[(1-p)^\gamma] \log p, \qquad \ell^- = -[p^\gamma] \log(1 - p)

    What stands in brackets is not differentiated.
    The value is that of :func:`focal`; the paper's numbers come from this form.

    Args:
        gamma: How strongly easy entries are played down; 0 gives cross-entropy.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return _focal(gamma, True, common)


@LOSSES.register("asl")
def asl(
    *,
    gamma_pos: float = 0.0,
    gamma_neg: float = 4.0,
    shift: float = 0.05,
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""Asymmetric loss, the equation: easy negatives cost little or nothing.

    .. math::
        \ell^+ = -(1-p)^{\gamma_+} \log p, \qquad
        \ell^- = -p_m^{\gamma_-} \log(1 - p_m), \qquad p_m = \max(p - m, 0)

    Args:
        gamma_pos: How strongly easy positives are played down.
        gamma_neg: How strongly easy negatives are played down: 0, or at least 1.
        shift: The probability m below which negatives cost nothing.
        **common: Options of :class:`MultiLabelLoss`.

    Note:
        The gradient flows through the weights; :func:`asl_released` holds them constant.
    """
    return _asl(gamma_pos, gamma_neg, shift, False, common)


@LOSSES.register("asl_released")
def asl_released(
    *,
    gamma_pos: float = 0.0,
    gamma_neg: float = 4.0,
    shift: float = 0.05,
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""Asymmetric loss as in the released code: the weights are constants in the gradient.

    .. math::
        \ell^+ = -[(1-p)^{\gamma_+}] \log p, \qquad
        \ell^- = -[p_m^{\gamma_-}] \log(1 - p_m), \qquad p_m = \max(p - m, 0)

    What stands in brackets is not differentiated.
    The value is that of :func:`asl`; the paper's numbers come from this form.

    Args:
        gamma_pos: How strongly easy positives are played down.
        gamma_neg: How strongly easy negatives are played down: 0, or at least 1.
        shift: The probability m below which negatives cost nothing.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return _asl(gamma_pos, gamma_neg, shift, True, common)


@LOSSES.register("mse")
def mse(**common: Unpack[Common]) -> MultiLabelLoss:
    r"""Cross-entropy positives with squared-error negatives, the paper's "MSE-".

    .. math:: \ell^+ = -\log p, \qquad \ell^- = p^2
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

    Args:
        gamma: How strongly easy entries are played down.
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

    Args:
        lam: Height of the hill; 1.5 puts the turning point of the gradient at p = 0.5.
        margin: The m in :math:`p_m = \sigma(x - m)`.
        gamma: How strongly easy positives are played down.
        **common: Options of :class:`MultiLabelLoss`.

    Example:
        >>> hill()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.0558)

    Reference:
        Eq. 5 and 11 of "Simple and Robust Loss Design for Multi-Label Learning with Missing
        Labels".

    Note:
        Start a new classification head with :func:`init_head`. From bias 0 and a brisk learning
        rate, negatives can overshoot to where the hill is flat and stay there.
    """
    return MultiLabelLoss(
        positive=FocalPositive(gamma=gamma, margin=margin), negative=HillNegative(lam=lam), **common
    )


def _focal(gamma: float, detach_weight: bool, common: Common) -> MultiLabelLoss:
    return MultiLabelLoss(
        positive=FocalPositive(gamma=gamma, detach_weight=detach_weight),
        negative=FocalNegative(gamma=gamma, detach_weight=detach_weight),
        **common,
    )


def _asl(
    gamma_pos: float, gamma_neg: float, shift: float, detach_weight: bool, common: Common
) -> MultiLabelLoss:
    return MultiLabelLoss(
        positive=FocalPositive(gamma=gamma_pos, detach_weight=detach_weight),
        negative=ShiftedFocalNegative(gamma=gamma_neg, shift=shift, detach_weight=detach_weight),
        **common,
    )
