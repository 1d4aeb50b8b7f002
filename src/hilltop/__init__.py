"""Hilltop: multi-label learning when annotators left labels out.

Submodules load when first used, so that ``hilltop.losses`` needs torch alone.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"
__all__ = ["data", "errors", "integrations", "losses", "metrics"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"hilltop.{name}")
    raise AttributeError(f"module 'hilltop' has no attribute {name!r}")
