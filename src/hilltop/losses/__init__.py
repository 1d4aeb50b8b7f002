"""Losses for multi-label learning with missing labels. Needs torch alone.

``hill()`` and the other presets return a module that is called like ``BCEWithLogitsLoss``;
:class:`MultiLabelLoss` combines terms and corrections freely.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from hilltop.deprecation import renamed_attributes
from hilltop.losses import likelihood, methods
from hilltop.losses.base import Evidence, LabelStats, Loss, PairBatch
from hilltop.losses.catalogue import LOSSES, MethodCard, build
from hilltop.losses.compose import MultiLabelLoss
from hilltop.losses.corrections import Correction, EmaTeacher, SelectiveCorrection
from hilltop.losses.init import best_constant, init_head, init_head_prior
from hilltop.losses.likelihood.count import CountLikelihood, count_likelihood
from hilltop.losses.likelihood.scar import (
    LabelFrequency,
    ObservationModel,
    ScarLikelihood,
    ScarNegative,
    ScarPositive,
    scar_likelihood,
)
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
from hilltop.losses.safe_start import SafeStart
from hilltop.losses.terms import (
    FocalNegative,
    FocalPositive,
    HillNegative,
    LogNegative,
    LogPositive,
    MseNegative,
    NegativeTerm,
    PositiveTerm,
    ShiftedFocalNegative,
    WeakNegative,
)
from hilltop.losses.watch import CollapseWatch

__all__ = [
    "LOSSES",
    "AbsentWeights",
    "AdaptiveSelfPacedCorrection",
    "AsymmetricPseudoLabels",
    "Auto",
    "BoundedSelfPacedCorrection",
    "CollapseWatch",
    "Correction",
    "CountLikelihood",
    "EmaTeacher",
    "EntropyNegative",
    "Evidence",
    "FocalNegative",
    "FocalPositive",
    "GeneralisedNegative",
    "GeneralisedPositive",
    "GradualCorrection",
    "HillNegative",
    "LabelFrequency",
    "LabelStats",
    "LargeLossCorrection",
    "LargeLossPermanent",
    "LargeLossRejection",
    "LogNegative",
    "LogPositive",
    "Loss",
    "MethodCard",
    "MseNegative",
    "MultiLabelLoss",
    "NegativeTerm",
    "ObservationModel",
    "PairBatch",
    "PositiveTerm",
    "Role",
    "RowWeighted",
    "SafeStart",
    "ScarLikelihood",
    "ScarNegative",
    "ScarPositive",
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
    "count_likelihood",
    "em_apl",
    "focal",
    "focal_margin",
    "focal_released",
    "gr",
    "hill",
    "init_head",
    "init_head_prior",
    "ll_cp",
    "ll_ct",
    "ll_r",
    "mse",
    "role",
    "role_threshold",
    "scar_likelihood",
    "splc",
    "splc_adaptive",
    "splc_bounded",
    "splc_released",
    "wan",
]

# A loss whose file lies in one of these packages is registered by being there.
for _package in (likelihood, methods):
    for _file in pkgutil.iter_modules(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_file.name)

_RENAMED = {
    "JudgedCorrection": "EmaTeacher",
    "KeepRate": "LabelFrequency",
    "KeptByCount": "CountLikelihood",
    "KeptIndependently": "ScarLikelihood",
    "KeptNegative": "ScarNegative",
    "KeptPositive": "ScarPositive",
    "kept_by_count": "count_likelihood",
    "kept_independently": "scar_likelihood",
}
_renamed = renamed_attributes(__name__, _RENAMED)


def __getattr__(name: str) -> Any:
    """Return a registered loss that this file does not name, or a renamed one."""
    return LOSSES.builder(name) if name in list(LOSSES) else _renamed(name)
