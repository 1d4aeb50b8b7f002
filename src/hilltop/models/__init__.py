"""What is trained: a head on features, or any timm backbone on images.

timm is imported only when a backbone is built; heads need torch alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from hilltop.models.cut import block_names, cut_below, outputs_below
    from hilltop.models.feature_rows import Features, SparseRows, input_rows, take_rows
    from hilltop.models.heads import FeatureHead, Scaling, has_zeros
    from hilltop.models.images import (
        NormalisedInput,
        build_image_model,
        classifier_parameters,
        count_parameters,
        hold_statistics,
    )

__all__ = [
    "FeatureHead",
    "Features",
    "NormalisedInput",
    "Scaling",
    "SparseRows",
    "block_names",
    "build_image_model",
    "classifier_parameters",
    "count_parameters",
    "cut_below",
    "has_zeros",
    "hold_statistics",
    "input_rows",
    "outputs_below",
    "take_rows",
]

_MODULES = {
    "FeatureHead": "heads",
    "Features": "feature_rows",
    "NormalisedInput": "images",
    "Scaling": "heads",
    "SparseRows": "feature_rows",
    "block_names": "cut",
    "build_image_model": "images",
    "classifier_parameters": "images",
    "count_parameters": "images",
    "cut_below": "cut",
    "has_zeros": "heads",
    "hold_statistics": "images",
    "input_rows": "feature_rows",
    "outputs_below": "cut",
    "take_rows": "feature_rows",
}
__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
