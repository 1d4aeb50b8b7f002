"""From images or features to scores: training that a person can trust.

Names load when first used, so that the parts that need torch alone can be had with torch alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from hilltop.training.config import ModelConfig, TrainConfig
    from hilltop.training.folds import out_of_fold_logits
    from hilltop.training.in_memory import fit_head
    from hilltop.training.predict import load_run, predict_run
    from hilltop.training.recipe import Recipe
    from hilltop.training.run_folder import RunFolder
    from hilltop.training.stages import resume, train

__all__ = [
    "ModelConfig",
    "Recipe",
    "RunFolder",
    "TrainConfig",
    "fit_head",
    "load_run",
    "out_of_fold_logits",
    "predict_run",
    "resume",
    "train",
]

_MODULES = {
    "ModelConfig": "config",
    "Recipe": "recipe",
    "RunFolder": "run_folder",
    "TrainConfig": "config",
    "fit_head": "in_memory",
    "load_run": "predict",
    "out_of_fold_logits": "folds",
    "predict_run": "predict",
    "resume": "stages",
    "train": "stages",
}
__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
