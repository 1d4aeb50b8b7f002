"""Lightning Fabric, imported without what it does not need.

To learn its version, lightning-fabric imports all of torchmetrics where that is installed, and with
it SciPy, torchvision and transformers: five seconds before a run begins.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def only_the_version_of(package: str) -> Iterator[None]:
    """Have imports of a package find nothing but its version, unless it is imported already."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        version = None
    if version is None or package in sys.modules:
        yield
        return
    module = ModuleType(package)
    module.__version__ = version  # type: ignore[attr-defined]
    sys.modules[package] = module
    try:
        yield
    finally:
        del sys.modules[package]


with only_the_version_of("torchmetrics"):
    from lightning_fabric import Fabric


def gradient_scaler(fabric: Fabric) -> dict[str, Any]:
    """The scaler of gradients by its name in a checkpoint, where the precision has one."""
    scaler = getattr(fabric.strategy.precision, "scaler", None)
    return {} if scaler is None else {"scaler": scaler}


__all__ = ["Fabric", "gradient_scaler", "only_the_version_of"]
