"""Losses for multi-label learning with missing labels. Needs torch alone.

``hill()`` and the other presets return a module that is called like ``BCEWithLogitsLoss``;
:class:`MultiLabelLoss` combines halves and corrections freely.
"""

from hilltop.losses.base import Loss, TrainingFacts
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.correction import CORRECTIONS, Correction, SelfPacedCorrection
from hilltop.losses.half import NegativeHalf, PositiveHalf
from hilltop.losses.negative import (
    NEGATIVES,
    FocalNegative,
    HillNegative,
    LogNegative,
    MseNegative,
    ShiftedFocalNegative,
    WeakNegative,
)
from hilltop.losses.positive import POSITIVES, FocalPositive, LogPositive
from hilltop.losses.presets import (
    LOSSES,
    asl,
    asl_released,
    bce,
    bce_ls,
    build,
    focal,
    focal_margin,
    focal_released,
    hill,
    mse,
    splc,
    splc_released,
    wan,
)
from hilltop.losses.prior import init_head_prior

__all__ = [
    "CORRECTIONS",
    "LOSSES",
    "NEGATIVES",
    "POSITIVES",
    "Correction",
    "FocalNegative",
    "FocalPositive",
    "HillNegative",
    "LogNegative",
    "LogPositive",
    "Loss",
    "MseNegative",
    "MultiLabelLoss",
    "NegativeHalf",
    "PositiveHalf",
    "SelfPacedCorrection",
    "ShiftedFocalNegative",
    "TrainingFacts",
    "WeakNegative",
    "asl",
    "asl_released",
    "bce",
    "bce_ls",
    "build",
    "focal",
    "focal_margin",
    "focal_released",
    "hill",
    "init_head_prior",
    "mse",
    "splc",
    "splc_released",
    "wan",
]
