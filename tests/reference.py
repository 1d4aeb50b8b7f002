"""Every equation of the paper as a scalar loop in plain Python floats.

Written from the paper, without torch and without looking at the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable

Term = Callable[[float], float]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def minus_log_sigmoid(x: float) -> float:
    return max(-x, 0.0) + math.log1p(math.exp(-abs(x)))


def log_positive(x: float) -> float:
    return minus_log_sigmoid(x)


def log_negative(x: float) -> float:
    return minus_log_sigmoid(-x)


def weak_negative(x: float, classes: int) -> float:
    return log_negative(x) / (classes - 1)


def focal_positive(x: float, gamma: float = 2.0, margin: float = 0.0) -> float:
    return sigmoid(-(x - margin)) ** gamma * minus_log_sigmoid(x - margin)


def focal_negative(x: float, gamma: float = 2.0) -> float:
    return sigmoid(x) ** gamma * log_negative(x)


def asl_negative(x: float, gamma: float = 4.0, shift: float = 0.05) -> float:
    p_m = max(sigmoid(x) - shift, 0.0)
    return -(p_m**gamma) * math.log(1 - p_m)


def mse_negative(x: float) -> float:
    return sigmoid(x) ** 2


def hill_negative(x: float, lam: float = 1.5) -> float:
    return (lam - sigmoid(x)) * sigmoid(x) ** 2


def focal_margin_positive(x: float) -> float:
    return focal_positive(x, margin=1.0)


def self_paced(loss_neg: Term, pseudo: Term, tau: float) -> Term:
    return lambda x: loss_neg(x) if sigmoid(x) <= tau else pseudo(x)


def loss_of(positive: Term, negative: Term, x: float, y: float) -> float:
    """One term of Eq. 1, its minus sign folded into the terms."""
    return y * positive(x) + (1 - y) * negative(x)


def preset(name: str, x: float, y: float, classes: int, epoch: int) -> float:
    """Loss of one entry under the preset ``name``."""
    if name == "bce_ls":
        return loss_of(log_positive, log_negative, x, 0.9 * y + 0.1 * (1 - y))
    positive, negative = TERMS[name]
    if name == "wan":
        return loss_of(positive, lambda z: weak_negative(z, classes), x, y)
    if name.startswith("splc") and epoch >= 1:
        pseudo = focal_positive if name in ("splc", "splc_released") else positive
        negative = self_paced(negative, pseudo, 0.6)
    return loss_of(positive, negative, x, y)


TERMS: dict[str, tuple[Term, Term]] = {
    "asl": (log_positive, asl_negative),
    "asl_released": (log_positive, asl_negative),
    "bce": (log_positive, log_negative),
    "focal": (focal_positive, focal_negative),
    "focal_margin": (focal_margin_positive, focal_negative),
    "focal_released": (focal_positive, focal_negative),
    "hill": (focal_margin_positive, hill_negative),
    "mse": (log_positive, mse_negative),
    "splc": (focal_margin_positive, focal_negative),
    "splc_released": (focal_margin_positive, focal_negative),
    "wan": (log_positive, log_negative),
}
