"""Losses for multi-label learning with missing labels. Needs torch alone.

``hill()`` and the other presets return a module that is called like ``BCEWithLogitsLoss``;
:class:`MultiLabelLoss` combines terms and corrections freely.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from hilltop.losses import likelihood, methods
from hilltop.losses.base import LabelStats, Loss, PairBatch
from hilltop.losses.catalogue import LOSSES, MethodCard, build
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.engine.fused_step import FusedSgd
from hilltop.losses.init import best_constant, init_head, init_head_prior
from hilltop.losses.likelihood.by_count import KeptByCount, kept_by_count
from hilltop.losses.likelihood.independent import (
    KeptIndependently,
    ObservationModel,
    kept_independently,
)
from hilltop.losses.likelihood.keep_rate import KeepRate, KeptNegative, KeptPositive
from hilltop.losses.methods.auto import AbsentWeights, Auto, auto
from hilltop.losses.methods.em_apl import AsymmetricPseudoLabels, EntropyNegative, em_apl
from hilltop.losses.methods.focal import asl, asl_released, focal, focal_released
from hilltop.losses.methods.gr import (
    GeneralisedNegative,
    GeneralisedPositive,
    GradualCorrection,
    gr,
)
from hilltop.losses.methods.large_loss import (
    LargeLossCorrection,
    LargeLossPermanent,
    LargeLossRejection,
    ll_cp,
    ll_ct,
    ll_r,
)
from hilltop.losses.methods.presets import bce, bce_ls, focal_margin, hill, mse, wan
from hilltop.losses.methods.role import Role, role, role_threshold
from hilltop.losses.methods.splc import (
    BoundedSelfPacedCorrection,
    SelfPacedCorrection,
    splc,
    splc_bounded,
    splc_released,
)
from hilltop.losses.methods.splc_adaptive import AdaptiveSelfPacedCorrection, splc_adaptive
from hilltop.losses.row_weights import RowWeighted
from hilltop.losses.terms.base import NegativeTerm, PositiveTerm
from hilltop.losses.terms.correction import CORRECTIONS, Correction, SelectiveCorrection
from hilltop.losses.terms.negative import (
    NEGATIVES,
    FocalNegative,
    HillNegative,
    LogNegative,
    MseNegative,
    ShiftedFocalNegative,
    WeakNegative,
)
from hilltop.losses.terms.positive import POSITIVES, FocalPositive, LogPositive
from hilltop.losses.watch import CollapseWatch
from hilltop.losses.wrapper import LossWrapper

if TYPE_CHECKING:
    from hilltop.losses.engine.fused_linear import FusedLinearLoss

__all__ = [
    "CORRECTIONS",
    "LOSSES",
    "NEGATIVES",
    "POSITIVES",
    "AbsentWeights",
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
    "FusedSgd",
    "GeneralisedNegative",
    "GeneralisedPositive",
    "GradualCorrection",
    "HillNegative",
    "KeepRate",
    "KeptByCount",
    "KeptIndependently",
    "KeptNegative",
    "KeptPositive",
    "LabelStats",
    "LargeLossCorrection",
    "LargeLossPermanent",
    "LargeLossRejection",
    "LogNegative",
    "LogPositive",
    "Loss",
    "LossWrapper",
    "MethodCard",
    "MseNegative",
    "MultiLabelLoss",
    "NegativeTerm",
    "ObservationModel",
    "PairBatch",
    "PositiveTerm",
    "Role",
    "RowWeighted",
    "SelectiveCorrection",
    "SelfPacedCorrection",
    "ShiftedFocalNegative",
    "WeakNegative",
    "asl",
    "asl_released",
    "auto",
    "bce",
    "bce_ls",
    "best_constant",
    "build",
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
    "splc_bounded",
    "splc_released",
    "wan",
]

# The imports above are for type checkers. A loss whose file lies in one of these rooms is public
# under its name all the same.
for _room in (likelihood, methods):
    for _file in pkgutil.iter_modules(_room.__path__, f"{_room.__name__}."):
        importlib.import_module(_file.name)
DISCOVERED = [name for name in LOSSES if name not in __all__]
globals().update({name: LOSSES.builder(name) for name in DISCOVERED})
__all__ += DISCOVERED


def __getattr__(name: str) -> Any:
    # It alone needs torch's compiler, which takes as long to import as the rest of torch.
    if name == "FusedLinearLoss":
        from hilltop.losses.engine.fused_linear import FusedLinearLoss

        return FusedLinearLoss
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
