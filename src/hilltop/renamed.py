"""Public names that changed: the old ones work for one release and say what to write instead."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that an old name was used."""
    warnings.warn(
        f"{old} is now called {new}; the old name will be removed in the next release.",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def renamed_names(module: str, names: Mapping[str, str], find: Callable[[str], Any]) -> Any:
    """Return a module's ``__getattr__`` that gives new objects for old names.

    Args:
        module: Name of the module.
        names: New name of each old one.
        find: Gives the object of a new name.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", f"{module}.{names[name]}")
        return find(names[name])

    return get
