"""Presets: losses of the paper by the names it gives them, ready to call; see splc.py too."""

from __future__ import annotations

from typing import Unpack

from hilltop.losses.catalogue import LOSSES, Common, CommonWithoutSmoothing, MethodCard
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


@LOSSES.register(
    "bce",
    MethodCard(
        unlabelled="true negatives",
        remark="binary cross-entropy",
        when="When labels are complete, and as the line that every other loss has to beat.",
    ),
)
def bce(**common: Unpack[Common]) -> MultiLabelLoss:
    r"""Binary cross-entropy: every unlabelled entry is a true negative.

    .. math:: \ell^+ = -\log p, \qquad \ell^- = -\log(1 - p)

    Example:
        >>> bce()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
        tensor(0.2201)
    """
    return MultiLabelLoss(positive=LogPositive(), negative=LogNegative(), **common)


@LOSSES.register(
    "wan",
    MethodCard(
        unlabelled="weak negatives",
        remark="cross-entropy, weight 1/(K-1) on them",
        when=(
            "When labels are very sparse and you want cross-entropy that is simply less sure"
            " of what is not labelled."
        ),
    ),
)
def wan(*, weight: float | None = None, **common: Unpack[Common]) -> MultiLabelLoss:
    r"""Weak assume-negatives: cross-entropy with a small weight on unlabelled entries.

    .. math:: \ell^+ = -\log p, \qquad \ell^- = -w \log(1 - p), \qquad w = 1/(K-1)

    Args:
        weight: The w of the equation; None takes :math:`1/(K-1)` for K classes.
        **common: Options of :class:`MultiLabelLoss`.
    """
    return MultiLabelLoss(positive=LogPositive(), negative=WeakNegative(weight=weight), **common)


@LOSSES.register(
    "bce_ls",
    MethodCard(
        unlabelled="probably negatives",
        remark="cross-entropy with smoothed targets",
        when=(
            "When a few labels are wrong in both directions. It does not know that missing"
            " labels are the usual fault."
        ),
    ),
)
def bce_ls(
    *, label_smoothing: float = 0.1, **common: Unpack[CommonWithoutSmoothing]
) -> MultiLabelLoss:
    r"""Binary cross-entropy with label smoothing: targets 1 - eps and eps.

    .. math:: \ell = -t \log p - (1 - t) \log(1 - p), \qquad t = y (1 - \epsilon) + (1 - y) \epsilon

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


@LOSSES.register(
    "focal",
    MethodCard(
        unlabelled="negatives, the easy ones played down",
        remark="Focal loss, the equation",
        when=(
            "When labels are complete and easy negatives drown the rest. With missing labels"
            " it pushes hardest on just those negatives that are probably positives."
        ),
    ),
)
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


@LOSSES.register(
    "focal_released",
    MethodCard(
        unlabelled="as in `focal`",
        remark="Focal loss as in its code",
        when="To compare with numbers in papers. Otherwise as `focal`.",
    ),
)
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


@LOSSES.register(
    "asl",
    MethodCard(
        unlabelled="negatives, the easy ones played down",
        remark="asymmetric loss, the equation",
        when=(
            "When positives are rare and labels are nearly complete. The last stretch near p"
            " = 1 is forgiven, what lies below it is not."
        ),
    ),
)
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


@LOSSES.register(
    "asl_released",
    MethodCard(
        unlabelled="as in `asl`",
        remark="asymmetric loss as in its code",
        when="To compare with numbers in papers. Otherwise as `asl`.",
    ),
)
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


@LOSSES.register(
    "mse",
    MethodCard(
        unlabelled="forgiven when confident",
        remark="squared probability",
        when=(
            "To see how much of Hill is owed to squaring: it is the step between"
            " cross-entropy and Hill."
        ),
    ),
)
def mse(**common: Unpack[Common]) -> MultiLabelLoss:
    r"""Cross-entropy positives with squared-error negatives, the paper's "MSE-".

    .. math:: \ell^+ = -\log p, \qquad \ell^- = p^2
    """
    return MultiLabelLoss(positive=LogPositive(), negative=MseNegative(), **common)


@LOSSES.register(
    "focal_margin",
    MethodCard(
        unlabelled="as in `focal`",
        remark="positives carry a margin",
        when=(
            "As a base for corrections, or when half-learned positives deserve more"
            " attention. It is the positive term of the Hill loss of the paper, with Focal"
            " negatives."
        ),
    ),
)
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


@LOSSES.register(
    "hill",
    MethodCard(
        unlabelled="forgiven when confident",
        remark="the paper's first method",
        when=(
            "When a network is fine-tuned on incomplete labels and one line is all you want"
            " to change: nothing is relabelled, nothing needs an epoch, and there is hardly"
            " anything to tune."
        ),
    ),
)
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
