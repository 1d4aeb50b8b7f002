"""Lazy imports: public names of a package that load when they are first used.

A package lists the submodule of each name, so that importing it needs none of their dependencies.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from hilltop.errors import MissingExtra

_EXTRAS = {"missing": "data"}
"""The extra that a package needs beside torch; the others need that of training."""


def lazy_imports(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: The package, its ``__name__``.
        modules: Public name to the submodule that defines it; a submodule is its own.

    Example:
        >>> get, names = lazy_imports("hilltop", {"errors": "errors"})
        >>> get("errors").__name__, names()
        ('hilltop.errors', ['errors'])
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(f"{package}.{modules[name]}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "hilltop":
                raise
            extra = _EXTRAS.get(package.split(".")[1] if "." in package else "", "train")
            raise MissingExtra(f"{package}.{name}", error.name, extra) from None
        value = module if modules[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(modules)
