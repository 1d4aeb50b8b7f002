"""From images or features to scores: training that a person can trust.

Names load when first used, so that the parts that need torch alone can be had with torch alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilltop.training.config import ModelConfig, TrainConfig
    from hilltop.training.stages import resume, train

__all__ = ["ModelConfig", "TrainConfig", "resume", "train"]

_HOMES = {"ModelConfig": "config", "TrainConfig": "config", "resume": "stages", "train": "stages"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"hilltop.training.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'hilltop.training' has no attribute {name!r}")
