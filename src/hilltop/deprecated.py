"""Old names of moved things: they work for one release and say what to use instead."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def deprecated_names(module: str, moved: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module whose names have moved.

    Args:
        module: Its ``__name__``.
        moved: Old name to the full new one, such as ``"hilltop.missing.Calibrator"``.

    Example:
        >>> get = deprecated_names("hilltop.old", {"Range": "hilltop.missing.Interval"})
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     get("Range").__name__
        'Interval'
    """

    def get(name: str) -> Any:
        if name not in moved:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = moved[name]
        warnings.warn(
            f"{module}.{name} is deprecated and will be removed in the next release; use {new}.",
            DeprecationWarning,
            stacklevel=2,
        )
        home, _, attribute = new.rpartition(".")
        return getattr(importlib.import_module(home), attribute)

    return get
