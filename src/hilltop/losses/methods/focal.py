"""Focal loss and the asymmetric loss, as equations and as in the code released with them."""

from __future__ import annotations

from typing import Unpack

from hilltop.checks import check_number
from hilltop.losses.catalogue import LOSSES, Common
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.terms import FocalNegative, FocalPositive, ShiftedFocalNegative


@LOSSES.register("focal")
def focal(
    *,
    gamma: float = 2.0,
    alpha_pos: float = 1.0,
    alpha_neg: float = 1.0,
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""Focal loss, the equation: hard entries count more.

    .. math::
        \ell^+ = -\alpha_+ (1-p)^\gamma \log p, \qquad \ell^- = -\alpha_- p^\gamma \log(1 - p)

    Assumption:
        Unlabelled entries are negatives, the easy ones down-weighted.

    When to use:
        When labels are complete and easy negatives drown the rest. With missing labels it pushes
        hardest on just those negatives that are probably positives.

    Args:
        gamma: How strongly easy entries are down-weighted; 0 gives cross-entropy.
        alpha_pos: Factor on all positives; together they balance positives and negatives.
        alpha_neg: Factor on all negatives. The paper prints both and uses 1; Focal loss for object
            detection has 0.25 and 0.75.
        **common: Options of :class:`MultiLabelLoss`.

    Note:
        The gradient flows through the weights; :func:`focal_released` holds them constant.
    """
    return _focal(gamma, (alpha_pos, alpha_neg), False, common)


@LOSSES.register("focal_released")
def focal_released(
    *,
    gamma: float = 2.0,
    alpha_pos: float = 1.0,
    alpha_neg: float = 1.0,
    **common: Unpack[Common],
) -> MultiLabelLoss:
    r"""Focal loss as in the released code: the weights are constants in the gradient.

    .. math::
        \ell^+ = -\alpha_+ [(1-p)^\gamma] \log p, \qquad \ell^- = -\alpha_- [p^\gamma] \log(1 - p)

    What stands in brackets is not differentiated.
    The value is that of :func:`focal`; the paper's numbers come from this form.

    Assumption:
        As in `focal`, unlabelled entries are negatives, the easy ones down-weighted.

    When to use:
        To compare with numbers in papers. Otherwise as `focal`.

    Args:
        gamma: How strongly easy entries are down-weighted; 0 gives cross-entropy.
        alpha_pos: Factor on all positives; together they balance positives and negatives.
        alpha_neg: Factor on all negatives. The paper prints both and uses 1; Focal loss for object
            detection has 0.25 and 0.75.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return _focal(gamma, (alpha_pos, alpha_neg), True, common)


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

    Assumption:
        Unlabelled entries are negatives, the easy ones down-weighted.

    When to use:
        When positives are rare and labels are nearly complete. The last stretch near p = 1 is
        forgiven, what lies below it is not.

    Args:
        gamma_pos: How strongly easy positives are down-weighted.
        gamma_neg: How strongly easy negatives are down-weighted: 0, or at least 1.
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
    The value is that of :func:`asl`; the paper's numbers come from this form. It is its equation
    from the first step: ``safe_start`` is False unless it is given.

    Assumption:
        As in `asl`, unlabelled entries are negatives, the easy ones down-weighted.

    When to use:
        To compare with numbers in papers. Otherwise as `asl`.

    Args:
        gamma_pos: How strongly easy positives are down-weighted.
        gamma_neg: How strongly easy negatives are down-weighted: 0, or at least 1.
        shift: The probability m below which negatives cost nothing.
        **common: Options of :class:`MultiLabelLoss`.
    """
    common.setdefault("safe_start", False)
    return _asl(gamma_pos, gamma_neg, shift, True, common)


def _focal(
    gamma: float, alphas: tuple[float, float], detach_weight: bool, common: Common
) -> MultiLabelLoss:
    alpha_pos, alpha_neg = (
        check_number(name, alpha, low=0)
        for name, alpha in zip(("alpha_pos", "alpha_neg"), alphas, strict=True)
    )
    return MultiLabelLoss(
        positive=FocalPositive(gamma=gamma, detach_weight=detach_weight, alpha=alpha_pos),
        negative=FocalNegative(gamma=gamma, detach_weight=detach_weight, alpha=alpha_neg),
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
