"""Losses for multi-label learning with missing labels. Needs torch alone.

``hill()`` and the other presets return a module that is called like ``BCEWithLogitsLoss``;
:class:`MultiLabelLoss` combines halves and corrections freely.
"""

from hilltop.losses.adaptive import AdaptiveSelfPacedCorrection, splc_adaptive
from hilltop.losses.auto import Auto, auto, choose_loss
from hilltop.losses.base import Loss, TrainingFacts
from hilltop.losses.catalogue import LOSSES, build
from hilltop.losses.choose import choose_observation
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.correction import CORRECTIONS, Correction, SelectiveCorrection
from hilltop.losses.counted import KeptByCount, kept_by_count
from hilltop.losses.entropy import AsymmetricPseudoLabels, EntropyNegative, em_apl
from hilltop.losses.fused_linear import FusedLinearLoss
from hilltop.losses.gr import GeneralisedNegative, GeneralisedPositive, GradualCorrection, gr
from hilltop.losses.half import NegativeHalf, PositiveHalf
from hilltop.losses.kept import KeepRate, KeptNegative, KeptPositive
from hilltop.losses.large_loss import (
    LargeLossCorrection,
    LargeLossPermanent,
    LargeLossRejection,
    ll_cp,
    ll_ct,
    ll_r,
)
from hilltop.losses.negative import (
    NEGATIVES,
    FocalNegative,
    HillNegative,
    LogNegative,
    MseNegative,
    ShiftedFocalNegative,
    WeakNegative,
)
from hilltop.losses.observation import (
    KeptIndependently,
    ObservationModel,
    kept_independently,
)
from hilltop.losses.positive import POSITIVES, FocalPositive, LogPositive
from hilltop.losses.presets import (
    asl,
    asl_released,
    bce,
    bce_ls,
    focal,
    focal_margin,
    focal_released,
    hill,
    mse,
    wan,
)
from hilltop.losses.prior import init_head_prior
from hilltop.losses.role import Role, role, role_threshold
from hilltop.losses.self_paced import (
    BoundedSelfPacedCorrection,
    SelfPacedCorrection,
    splc,
    splc_released,
)
from hilltop.losses.start import best_constant, init_head
from hilltop.losses.watch import CollapseWatch

__all__ = [
    "CORRECTIONS",
    "LOSSES",
    "NEGATIVES",
    "POSITIVES",
    "AdaptiveSelfPacedCorrection",
    "AsymmetricPseudoLabels",
    "Auto",
    "BoundedSelfPacedCorrection",
    "CollapseWatch",
    "Correction",
    "EntropyNegative",
    "FocalNegative",
    "FocalPositive",
    "FusedLinearLoss",
    "GeneralisedNegative",
    "GeneralisedPositive",
    "GradualCorrection",
    "HillNegative",
    "KeepRate",
    "KeptByCount",
    "KeptIndependently",
    "KeptNegative",
    "KeptPositive",
    "LargeLossCorrection",
    "LargeLossPermanent",
    "LargeLossRejection",
    "LogNegative",
    "LogPositive",
    "Loss",
    "MseNegative",
    "MultiLabelLoss",
    "NegativeHalf",
    "ObservationModel",
    "PositiveHalf",
    "Role",
    "SelectiveCorrection",
    "SelfPacedCorrection",
    "ShiftedFocalNegative",
    "TrainingFacts",
    "WeakNegative",
    "asl",
    "asl_released",
    "auto",
    "bce",
    "bce_ls",
    "best_constant",
    "build",
    "choose_loss",
    "choose_observation",
    "em_apl",
    "focal",
    "focal_margin",
    "focal_released",
    "gr",
    "hill",
    "init_head",
    "init_head_prior",
    "kept_by_count",
    "kept_independently",
    "ll_cp",
    "ll_ct",
    "ll_r",
    "mse",
    "role",
    "role_threshold",
    "splc",
    "splc_adaptive",
    "splc_released",
    "wan",
]
