"""Hilltop inside other libraries. A library is imported only when a name that needs it is used.

What is not here needs no adapter: in Lightning, skorch, timm and a plain loop a loss of
:mod:`hilltop.losses` stands where ``BCEWithLogitsLoss`` stood; ``examples/`` shows each.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hilltop.errors import MissingExtra

if TYPE_CHECKING:
    from hilltop.integrations.estimator import HilltopClassifier
    from hilltop.integrations.hf import hf_epochs, hf_loss

__all__ = ["HilltopClassifier", "hf_epochs", "hf_loss"]

# Where a name lives, and the extra that brings what it needs.
_MODULES = {
    "HilltopClassifier": ("estimator", "sklearn"),
    "hf_epochs": ("hf", "hf"),
    "hf_loss": ("hf", "hf"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hilltop.integrations' has no attribute {name!r}")
    module, extra = _MODULES[name]
    try:
        return getattr(importlib.import_module(f"hilltop.integrations.{module}"), name)
    except ModuleNotFoundError as error:
        raise MissingExtra(name, error.name, extra) from None
